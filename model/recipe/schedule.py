"""Learning rates as a share of the peak, by step."""


def steps_for(amount: float, per_step: float) -> int:
    """How many steps use up an amount; at least one."""
    return max(1, round(amount / per_step))


def warm_then_constant(step: int, warm_up: int) -> float:
    return min(1.0, (step + 1) / warm_up)


def warm_then_fall(step: int, warm_up: int, steps: int) -> float:
    """Rises over the warm-up, then falls in a straight line to reach zero after the last step."""
    return min(1.0, (step + 1) / warm_up) * max(0.0, 1 - step / steps)


def muon_momentum(step: int) -> float:
    """From 0.85 to 0.95 over the first 300 steps: early gradients are not worth remembering."""
    return 0.85 + 0.10 * min(1.0, step / 300)
