"""The experiment's fixture as a job: every component, and each micro-step one step.

resume-audit examples/experiment_job.py --matrix --jobs 2

All 37 interruption points, before the first micro-step to after the last: with nothing left out each resume is
exact; the matrix shows at which micro-step the lack of a component first shows. The fixture is imported from the
folder above and knows nothing of this file.
"""

import sys
from pathlib import Path

from resume_audit import Attributes, Gradients, Job, Rng

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import experiment

STEPS = experiment.ExperimentConfig().total_microsteps  # 36
INTERRUPT = list(range(STEPS + 1))


def make_job(seed: int) -> Job:
    """Build the fixture from its seed, as the experiment does."""
    training = experiment.make_job(seed)

    def step() -> dict[str, float]:
        experiment.run_one_microstep(training)
        return {"loss": training.last_loss, "lr": experiment.learning_rate(training)}

    components = {
        "model": training.model,
        "optimizer": training.optimizer,
        "scheduler": training.scheduler,
        "stream": training.stream,
        "counters": Attributes(training, *experiment.COUNTERS),
        "gradients": Gradients(training.model),
        "rng": Rng("python", "numpy", "torch"),  # last: building and loading objects may draw from them
    }
    return Job(components, step)
