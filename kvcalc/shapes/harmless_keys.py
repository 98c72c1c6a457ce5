"""Which config keys could change a cache, judged by their words, and which are known not to.

A config may hold any key, and a new kind of attention announces itself by one.  So a key that speaks
of what a cache holds must be read by a family, be switched off, or stand below with a reason.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

STEMS = re.compile(
    "attention|attn|kv|cache|window|sliding|latent|lora_rank|rank|mamba|ssm|conv|state|head|pattern|"
    "sparse|index|compress|share|sharing|linear|recurren|chunk|layer_type|block|group|hybrid|mixer|"
    "retention|delta|interval|period|expand|memory|reuse|sink|stride|local|global|nextn|per_layer"
)
"""Parts of words that keys about caches are made of."""

WORDS = frozenset(
    {"cla", "csa", "dsa", "every", "gdn", "gqa", "kda", "mem", "mla", "mqa", "mtp", "nsa", "swa", "yoco"}
)
"""Whole words of the same kind, too short to look for inside others."""

HARMLESS = frozenset(
    name
    for group in (
        # Regularisation and initialisation act in training only.
        "attention_dropout attention_dropout_prob attention_probs_dropout_prob attn_dropout "
        "attn_dropout_prob attn_pdrop block_mlp_init_scale block_out_init_scale block_use_xavier_init "
        "conv_use_xavier_init init_nonlinearity",
        # Biases and norms change parameters, and values before they are cached, not what is cached.
        "add_bias_linear add_full_attention_sink_bias add_qkv_bias add_swa_attention_sink_bias "
        "attention_bias attention_layer_norm attention_out_bias attention_qkv_bias block_norm_eps "
        "conv_bias conv_norm full_attn_alpha_factor full_attn_beta_factor layernorm_full_attention_alpha "
        "layernorm_full_attention_beta layernorm_linear_attention_alpha layernorm_linear_attention_beta "
        "linear_attn_alpha_factor linear_attn_beta_factor linear_attn_bias lm_head_bias mamba_conv_bias "
        "mamba_inner_layernorms mamba_norm_before_gate mamba_proj_bias mamba_rms_norm mixer_rms_eps "
        "qkv_bias use_attention_bias use_conv_bias use_qkv_bias weight_share_add_bias",
        # Scales, caps and gates are arithmetic inside the attention.
        "activation_situ_linear_beta attention_in_multiplier attention_logit_softcapping "
        "attention_multiplier attention_out_multiplier attention_output_gate attention_softmax_in_fp32 "
        "attention_value_scale attn_logit_softcap attn_logit_softcapping attn_output_gate "
        "attn_output_multiplier attn_scale attn_temperature_tuning clip_qkv kda_lower_bound kda_safe_gate "
        "linear_allow_neg_eigval lm_head_multiplier max_attn_value mla_scale_kv_lora mla_scale_q_lora "
        "mla_use_output_gate mup_attn_multiplier query_pre_attn_scalar rescale_every "
        "scale_attention_softmax_in_fp32 scale_attn_by_inverse_layer_idx scale_attn_weights "
        "ssm_in_multiplier ssm_multipliers ssm_out_multiplier use_attn_scale use_full_rank_gate "
        "use_logn_attn",
        # Positions: which angles are applied, not how many entries are kept.
        "attn_rotary_emb compress_rope_theta global_rope_theta indexer_rope_interleave local_rope_theta "
        "mla_use_nope no_rope_layer_interval relative_attention_max_distance "
        "relative_attention_num_buckets rope_local_base_freq swa_rope_theta use_mem_rope",
        # Kernels and numerics: how the same result is computed, and in which pieces; draft blocks.
        "_attn_implementation _attn_implementation_autoset _attn_implementation_internal "
        "_flash_attn_2_enabled attn_impl attn_implementation attn_mode attn_res_block_size "
        "attn_uses_sequence_id block_size chunk_size chunk_size_feed_forward dt_rank flash_attn "
        "for_llm_compressor fuse_linear_cross_entropy hc_sinkhorn_iters mamba_chunk_size mamba_dt_rank "
        "mamba_hidden_act num_ln_in_parallel_attn parallel_attn parallel_attn_mlp_res prefill_chunk_size "
        "reorder_and_upcast_attn time_step_rank use_flash_attention use_flash_attention_2 use_flash_attn "
        "use_flash_attn_2 use_mamba_kernels use_mem_eff_path use_memory_efficient_attention",
        # Whether and through which class transformers caches; engines always do.
        "cache_implementation context_window_size pre_allocate_kv_cache use_cache",
        # Layers with feed-forward experts: which there are and how tokens are routed to them.
        "activation_sparsity_pattern block_auto_adjust_ff_dim block_dim block_ff_dim "
        "block_ffn_dim_multiplier block_multiple_of block_use_swiglu decoder_sparse_step enable_moe_block "
        "expert_layer_period gated_linear_unit group_limited_greedy hidden_size_per_layer_input "
        "latent_moe_use_norm mamba_use_mlp mlp_layer_types moe_group moe_group_size moe_latent_size "
        "moe_layer_end_index moe_layer_interval moe_layer_start_index moe_num_shared_experts "
        "moe_shared_expert_intermediate_size moe_shared_expert_overlap n_group n_shared_experts "
        "norm_after_topk_group num_expert_group num_local_experts num_shared_expert num_shared_experts "
        "share_expert_dim shared_expert_combination_strategy shared_expert_intermediate_size "
        "shared_intermediate_size shared_moe_mode topk_group use_grouped_topk vocab_size_per_layer_input",
        # Bottlenecks of projections other than the cached latent, and weights shared between layers.
        "a_low_rank_dim adapter_rank decay_low_rank_dim gate_low_rank_dim laurel_rank num_mem_blocks "
        "o_groups o_lora_rank q_lora_rank qk_head_dim use_shared_attention_adapter "
        "use_shared_attention_lora use_shared_block_adapter use_shared_block_lora use_shared_mlp_adapter "
        "use_shared_mlp_lora v_low_rank_dim",
        # Outputs, heads for other tasks, and decoding options of the saved file.
        "add_classification_head add_cross_attention alignment_heads cross_attention_hidden_size "
        "head_ffn_ratio lm_head num_beam_groups num_reward_heads output_attentions output_hidden_states "
        "pruned_heads reset_attention_mask rm_head",
        # Ids of tokens and indices of labels.
        "audio_token_index boi_token_index eoa_token_index eoi_token_index ignore_index ignored_index "
        "image_end_token_index image_start_token_index image_token_index pad_token_index "
        "video_token_index",
        # How images and sound become tokens: before the language model, or weights that go with it.
        "deepstack_visual_indexes encoder_attention_heads global_view_pos image_token_compression_method "
        "use_unified_vision_chunk",
        # Acts only where use_sliding_window is true, which is itself read or refused.
        "max_window_layers",
    )
    for name in group.split()
)

FOREIGN = re.compile(
    "vision|visual|vit_|image|img|audio|speech|acoustic|semantic|talker|projector|mm_|quantization|"
    "compression_config|rope_|auto_map|id2label|label2id|task_specific|generation|init_config|"
    "diffusion|dflash_config|eagle_config|gen_|transformers.js|tokenizer|peft|2wav|ffn_config"
)
"""Sections about other parts of a checkpoint than the language model's attention."""


def looks_cache_relevant(name: str) -> bool:
    """Whether a key's words speak of what a cache holds and the key is not known to be harmless."""
    lowered = name.lower()
    if name in HARMLESS:
        return False
    return STEMS.search(lowered) is not None or not WORDS.isdisjoint(re.split(r"[^a-z]+", lowered))


def suspicious(source: Mapping[str, Any], understood: frozenset[str] | set[str]) -> Iterator[str]:
    """Yield keys of `source` and its sections that may change the cache and are not `understood`.

    Null, false, zero and empty mean that a feature is off, and so does a ratio or factor of one.
    """
    for name, value in source.items():
        if isinstance(value, Mapping):
            if FOREIGN.search(name.lower()):
                continue
            if name not in understood and looks_cache_relevant(name) and value:
                yield name
            yield from suspicious(value, understood)
        elif name not in understood and looks_cache_relevant(name) and not _off(name, value):
            yield name


def _off(name: str, value: object) -> bool:
    return value in (None, False, 0, "", []) or (value == 1 and name.endswith(("_ratio", "_factor")))
