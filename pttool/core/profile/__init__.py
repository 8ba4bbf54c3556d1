"""Profiles: run a script with a recorder inside, and say in words where its time goes."""
