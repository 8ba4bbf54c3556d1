"""GPUs as NVML and /proc tell of them: see, pick, free and reset them, or say why there is none."""
