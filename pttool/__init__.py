"""pttool: the command-line toolbox for people who work with PyTorch."""

__version__ = "0.1.0"
