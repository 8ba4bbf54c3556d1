"""A training loop that says what it cost itself: for `benchmarks.profile`, bare and profiled."""

import argparse
import json
import resource
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

WARM_UP = 20  # the window of ops, steps 5 to 8 by default, lies before


def main() -> None:
    """Train for some steps and write {"cpu_s", "peak_bytes"}; CPU of the steps behind WARM_UP."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("net", choices=("cnn", "tiny"))
    parser.add_argument("steps", type=int)
    parser.add_argument("report", type=Path)
    asked = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net, batches = cnn(asked.steps) if asked.net == "cnn" else tiny(asked.steps)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    start = 0.0
    for step, (inputs, labels) in enumerate(batches):
        if step == WARM_UP:
            start = time.process_time()
        optimizer.zero_grad()
        torch.autograd.backward(nn.functional.cross_entropy(net(inputs), labels))
        optimizer.step()
    spent = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    asked.report.write_text(json.dumps({"cpu_s": spent, "peak_bytes": peak}))


def cnn(steps: int) -> tuple[nn.Module, DataLoader[tuple[torch.Tensor, ...]]]:
    """Return the network of torch's MNIST example, and as many batches of 32 images."""
    net = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Dropout(0.25), nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip
    images, labels = torch.randn(32, 1, 28, 28), torch.randint(10, (32,))
    dataset = TensorDataset(images.repeat(steps, 1, 1, 1), labels.repeat(steps))
    return net, DataLoader(dataset, batch_size=32)


def tiny(steps: int) -> tuple[nn.Module, DataLoader[tuple[torch.Tensor, ...]]]:
    """Return eight small layers and batches of one: next to nothing but calls."""
    net = nn.Sequential(*[nn.Linear(8, 8) for _ in range(8)])
    dataset = TensorDataset(torch.ones(steps, 8), torch.zeros(steps, dtype=torch.int64))
    return net, DataLoader(dataset, batch_size=1)


if __name__ == "__main__":
    main()
