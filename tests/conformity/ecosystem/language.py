"""Configurations of transformers, generation of text, and adapters of PEFT."""

from typing import Any, Dict, Tuple

import torch
from compare import Program, training, without_chance
from torch import Tensor, nn

WORDS = 97
# What makes any configuration small. A configuration takes of these what it has.
SMALL = {
    "vocab_size": WORDS, "hidden_size": 32, "d_model": 32, "n_embd": 32, "dim": 32, "embedding_size": 32,
    "num_hidden_layers": 2, "n_layer": 2, "n_layers": 2, "num_layers": 2, "encoder_layers": 2, "decoder_layers": 2,
    "num_decoder_layers": 2, "num_attention_heads": 4, "n_head": 4, "n_heads": 4, "num_heads": 4,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 64,
    "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "ffn_dim": 64, "d_ff": 64, "d_inner": 64, "hidden_dim": 64,
    "head_dim": 8, "d_head": 8, "d_kv": 8, "max_position_embeddings": 64, "n_positions": 64, "attention_heads": 4,
    "num_local_experts": 4, "intermediate_dim": 64, "word_embed_proj_dim": 32, "attention_hidden_size": 32,
    "state_size": 4, "context_length": 64, "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2,
    "decoder_start_token_id": 2, "use_cache": False, "activation_dropout": 0.0, "classifier_dropout": 0.0,
}  # fmt: skip
# What a configuration wants besides; None: what it does not let anybody set.
OWN: Dict[str, Dict[str, Any]] = {
    "BigBird": {"attention_type": "original_full"},
    "Funnel": {"block_sizes": [1, 1], "num_decoder_layers": 1, "num_hidden_layers": None},
    "GPTNeo": {"attention_types": [[["global", "local"], 1]], "window_size": 8},
    "Longformer": {"attention_window": [8, 8]},
    "MobileBert": {"intra_bottleneck_size": 32, "true_hidden_size": 32, "num_feedforward_networks": 2},
    "Falcon": {"new_decoder_architecture": False, "multi_query": True, "head_dim": None},
    "GPT2": {"n_inner": 64},
    "Mixtral": {"experts_implementation": "eager"},
    "T5": {"decoder_start_token_id": 0},
    "XLNet": {"max_position_embeddings": None},
}


def _configuration(name: str) -> Any:
    import transformers

    kind = getattr(transformers, f"{name}Config")
    defaults = kind()
    chosen = {key: value for key, value in SMALL.items() if hasattr(defaults, key)}
    chosen.update({key: 0.0 for key, value in vars(defaults).items() if "drop" in key and isinstance(value, float)})
    # A derived size follows from the others; what is given twice may contradict.
    for key in getattr(defaults, "attribute_map", {}):
        chosen.pop(key, None)
    chosen.update(OWN.get(name, {}))
    return kind(**{key: value for key, value in chosen.items() if value is not None})


def _model(name: str) -> nn.Module:
    """The model of a configuration with a language head, or with a classifier where it has none."""
    import transformers

    for head in ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "ForMaskedLM"):
        kind = getattr(transformers, f"{name}{head}", None)
        if kind is not None and not (head == "ForCausalLM" and hasattr(transformers, f"{name}ForMaskedLM")):
            return kind(_configuration(name))
    return getattr(transformers, f"{name}Model")(_configuration(name))


def _tokens(length: int = 16) -> Tensor:
    return torch.randint(3, WORDS, (2, length), generator=torch.Generator().manual_seed(1))


def _predicted(module: nn.Module, given: Dict[str, Tensor]) -> Tuple[Tensor, Any]:
    outputs = module(**given)
    return outputs.loss, outputs.logits


def transformers(name: str) -> Program:
    """Training steps and inference, with padding in one of the two sequences."""
    tokens = _tokens()
    mask = torch.ones_like(tokens)
    mask[1, 12:] = 0
    given = {"input_ids": tokens, "labels": tokens.clone()}
    if name not in ("FNet", "Mamba", "Rwkv"):
        given["attention_mask"] = mask
    return training(lambda: _model(name), given, _predicted)


def generation(name: str) -> Program:
    """Greedy search, and a beam search of four, over 24 tokens."""
    torch.manual_seed(0)
    model = without_chance(_model(name)).eval()

    def program(device: str, dtype: torch.dtype) -> Dict[str, Any]:
        there = model.to(device=device, dtype=dtype)
        tokens = _tokens(5).to(device)
        settings = {"max_new_tokens": 24, "do_sample": False, "attention_mask": torch.ones_like(tokens)}
        return {
            "greedy": there.generate(tokens, use_cache=True, **settings),
            "beams": there.generate(tokens, num_beams=4, use_cache=True, **settings),
        }

    return program


def peft(name: str) -> Program:
    """Training of an adapter beside a frozen Llama."""
    import peft as package

    targets = ["q_proj", "v_proj"]
    task = package.TaskType.CAUSAL_LM
    settings = {
        "lora": lambda: package.LoraConfig(task_type=task, r=4, target_modules=targets, init_lora_weights=False),
        "adalora": lambda: package.AdaLoraConfig(
            task_type=task, init_r=4, target_r=2, target_modules=targets, total_step=10
        ),
        "ia3": lambda: package.IA3Config(task_type=task, target_modules=targets, feedforward_modules=[]),
        "prefix": lambda: package.PrefixTuningConfig(task_type=task, num_virtual_tokens=4),
    }[name]
    tokens = _tokens()
    given = {"input_ids": tokens, "labels": tokens.clone()}
    return training(lambda: package.get_peft_model(_model("Llama"), settings()), given, _predicted)
