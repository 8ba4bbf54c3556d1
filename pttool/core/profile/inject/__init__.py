"""What Python imports inside the profiled process: nothing here may be seen by the script."""
