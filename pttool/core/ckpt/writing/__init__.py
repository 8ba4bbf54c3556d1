"""New files of weights: of torch, and safetensors."""
