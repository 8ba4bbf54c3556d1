"""What the recipes say of torch's own: the equalities that make it the answer."""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torchvision.transforms import v2


def test_label_smoothing_of_the_recipe_is_torchs_at_another_eps() -> None:
    """The recipe gives eps / (C - 1) to the other classes, torch eps / C to all."""
    classes, eps = 10, 0.1
    logits = 3 * torch.randn(64, classes, dtype=torch.float64)
    labels = torch.randint(classes, (64,))
    smoothed = torch.full_like(logits, eps / (classes - 1)).scatter_(1, labels[:, None], 1 - eps)
    recipe = torch.mean(torch.sum(-functional.log_softmax(logits, dim=1) * smoothed, dim=1))

    def torchs(smoothing: float) -> Tensor:
        loss: Tensor = nn.CrossEntropyLoss(label_smoothing=smoothing)(logits, labels)
        return loss

    assert abs(float(recipe - torchs(eps * classes / (classes - 1)))) < 1e-14
    assert abs(float(recipe - torchs(eps))) > 1e-4


def test_mixup_pairs_each_sample_with_the_one_before() -> None:
    images, labels = torch.rand(6, 3, 4, 4), torch.arange(6)
    torch.manual_seed(0)
    mixed, targets = v2.MixUp(alpha=0.4, num_classes=6)(images, labels)
    share = float(targets[0, 0])
    expected = images.roll(1, 0).mul(1 - share).add_(images.mul(share))
    assert torch.equal(mixed, expected)
    logits = torch.randn(6, 6, dtype=torch.float64)
    one = functional.cross_entropy(logits, targets.double())
    two = share * functional.cross_entropy(logits, labels)
    two += (1 - share) * functional.cross_entropy(logits, labels.roll(1))
    torch.testing.assert_close(one, two, rtol=1e-6, atol=0)
