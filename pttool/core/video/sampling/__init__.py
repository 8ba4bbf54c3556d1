"""How a batch of videos is sampled: names, tasks, worker processes."""
