"""The network reads a packed row as it reads each branch alone; needs PyTorch."""
import unittest

try:
    import torch

    from .average import soften
    from .config import Shape
    from .network import Network, tree_mask
    from .optimizers import make_optimizers, orthogonalise, step_all
    from .packing import NO_GROUP, Branch, Item, lay_out, may_attend
    from .train_decisions import decision_losses
except ModuleNotFoundError:
    torch = None

if torch:
    SHAPE = Shape(
        vocabulary=64, width=32, layers=2, heads=4, kv_heads=2, head_width=8, feed_forward=48, context=64
    )


def make_network() -> "Network":
    torch.manual_seed(0)
    network = Network(SHAPE)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return network.eval()


@unittest.skipIf(torch is None, "PyTorch is not installed")
class TreeAttention(unittest.TestCase):
    ITEMS = ([5, 6, 7, 8], [[9, 10, 11], [12, 13], [14]]), ([20, 21], [[22, 23]])

    def row(self):
        items = [Item(ids, [Branch(b, False, None) for b in branches]) for ids, branches in self.ITEMS]
        return lay_out(items, SHAPE.context, padding=0)

    def test_the_mask_is_the_rule_of_packing(self) -> None:
        row = self.row()
        mask = tree_mask(torch.tensor([row.documents]), torch.tensor([row.branches]))[0, 0]
        for query in range(SHAPE.context):
            for key in range(SHAPE.context):
                self.assertEqual(bool(mask[query, key]), may_attend(row.documents, row.branches, query, key))

    def test_a_branch_in_a_packed_row_reads_as_it_does_alone(self) -> None:
        network, row = make_network(), self.row()
        with torch.no_grad():
            mask = tree_mask(torch.tensor([row.documents]), torch.tensor([row.branches]))
            packed = network(torch.tensor([row.ids]), torch.tensor([row.positions]), mask)[0]
            alone = [
                network(torch.tensor([ids + b]))[0, -1] for ids, branches in self.ITEMS for b in branches
            ]
        self.assertEqual(len(row.answers), len(alone))
        for (column, _, _), want in zip(row.answers, alone):
            torch.testing.assert_close(packed[column], want, atol=1e-4, rtol=1e-4)


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Losses(unittest.TestCase):
    def test_the_group_loss_is_the_log_share_of_the_right_option(self) -> None:
        margins = torch.tensor([0.5, -1.0, 2.0, 0.3])
        yes = torch.tensor([False, True, False, True])
        groups = torch.tensor([0, 0, 0, NO_GROUP])
        _, group = decision_losses(margins, torch.zeros(4), yes, groups)
        share = torch.sigmoid(margins[1]) / torch.sigmoid(margins[:3]).sum()
        torch.testing.assert_close(group, -share.log())

    def test_a_choice_weighs_the_same_however_many_options_it_has(self) -> None:
        def mean(options: int) -> float:
            losses = torch.tensor([1.0] * options + [0.0])
            groups = torch.tensor([0] * options + [NO_GROUP])
            yes = torch.tensor([True] + [False] * options)
            return decision_losses(torch.zeros(options + 1), losses, yes, groups)[0].item()

        self.assertAlmostEqual(mean(2), mean(50), places=6)

    def test_predicates_alone_have_no_group_loss(self) -> None:
        single, group = decision_losses(
            torch.zeros(2), torch.tensor([1.0, 3.0]), torch.tensor([True, False]), torch.full((2,), NO_GROUP)
        )
        self.assertEqual((single.item(), group.item()), (2.0, 0.0))


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Finish(unittest.TestCase):
    def test_softening_divides_the_margin_and_leaves_the_other_logits(self) -> None:
        embedding, hidden = torch.randn(64, 32), torch.randn(32)
        before = embedding @ hidden
        soften(embedding, 10, 20, 1.6)
        after = embedding @ hidden
        torch.testing.assert_close(
            after[10] - after[20], (before[10] - before[20]) / 1.6, atol=1e-4, rtol=1e-4
        )
        others = [i for i in range(64) if i not in (10, 20)]
        self.assertTrue(torch.equal(after[others], before[others]))


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Optimizing(unittest.TestCase):
    def test_updates_are_nearly_orthogonal(self) -> None:
        torch.manual_seed(1)
        made = orthogonalise(torch.randn(3, 16, 48)).float()
        for values in torch.linalg.svdvals(made):
            self.assertTrue(bool((values > 0.5).all() and (values < 1.5).all()))

    def test_a_few_steps_learn_a_constant_sequence(self) -> None:
        torch.manual_seed(2)
        network = Network(SHAPE)
        optimizers = make_optimizers(network, 0.02, 0.003)
        ids = torch.full((4, 17), 7)
        first = network.language_loss(ids[:, :-1], ids[:, 1:])
        loss = first
        for _ in range(20):
            loss.backward()
            step_all(optimizers, 1.0)
            loss = network.language_loss(ids[:, :-1], ids[:, 1:])
        self.assertLess(loss.item(), first.item() / 2)


if __name__ == "__main__":
    unittest.main()
