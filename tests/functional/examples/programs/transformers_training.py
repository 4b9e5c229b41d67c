"""A model of Hugging Face's that its Trainer trains on CPU; SIGTERM comes in the middle of the step STOP_IN.

With BEST it is evaluated, ever worse, and the best is loaded at the end.
"""

import hashlib
import os
import signal
import sys

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

from relaunch_training import Checkpoints
from relaunch_transformers import RelaunchCallback

STEPS = 12


class Model(BertForSequenceClassification):
    def forward(self, input_ids, labels):
        self.calls = getattr(self, "calls", 0) + self.training
        if self.training and self.calls == int(os.environ.get("STOP_IN", "0")) and os.environ.get("RANK", "0") == "0":
            os.kill(os.getpid(), signal.SIGTERM)
        return super().forward(input_ids=input_ids, labels=labels)


def main(output):
    set_seed(1)
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    model = Model(BertConfig(vocab_size=32, max_position_embeddings=8, **shape))
    generator = torch.Generator().manual_seed(2)
    data = [
        {"input_ids": torch.randint(0, 32, (8,), generator=generator), "labels": torch.tensor(each % 2)}
        for each in range(64)
    ]
    arguments = TrainingArguments(
        output, max_steps=STEPS, per_device_train_batch_size=4, save_steps=4, logging_steps=2, seed=3,
        use_cpu=True, report_to=[], disable_tqdm=True, dataloader_pin_memory=False,
    )  # fmt: skip
    if "BEST" in os.environ:
        arguments.eval_strategy = arguments.save_strategy
        arguments.eval_steps = arguments.save_steps
        arguments.metric_for_best_model = "score"
        arguments.greater_is_better = True
        arguments.load_best_model_at_end = True
        arguments.save_total_limit = 1
    with Checkpoints.from_environment(report_seconds=0) as checkpoints:
        newest = checkpoints.resume(f"{output}/resumed")
        callback = RelaunchCallback(checkpoints, newest)
        trainer = Trainer(
            model, arguments, train_dataset=data, eval_dataset=data[:8], callbacks=[callback],
            compute_metrics=lambda _: {"score": -trainer.state.global_step},
        )  # fmt: skip
        trainer.train(resume_from_checkpoint=str(newest.folder) if newest else None)
    weights = b"".join(each.detach().numpy().tobytes() for each in model.state_dict().values())
    if os.environ.get("RANK", "0") == "0":
        print(f"ended at {trainer.state.global_step} with {hashlib.sha256(weights).hexdigest()}", flush=True)
    if callback.stopped:
        sys.exit(0)
    trainer.evaluate()
    print("published", flush=True)


main(sys.argv[1])
