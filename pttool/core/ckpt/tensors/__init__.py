"""The tensors and values among the nodes of a checkpoint, and the bytes behind them."""
