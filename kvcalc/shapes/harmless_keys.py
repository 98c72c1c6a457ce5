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
    "retention|delta|interval|period|expand|memory|reuse|sink|stride|local|global|nextn|cross_layer|dedup"
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
        "attention_dropout attention_dropout_prob attention_probs_dropout_prob attn_dropout attn_dropout_prob "
        "attn_pdrop block_mlp_init_scale block_out_init_scale block_use_xavier_init conv_use_xavier_init "
        "init_nonlinearity layer_scale_init_value classifier_dropout aux_loss_alpha",
        # Biases and norms change parameters, and values before they are cached, not what is cached.
        "add_bias_linear add_qkv_bias attention_bias attention_layer_norm attention_out_bias "
        "attention_qkv_bias block_norm_eps conv_bias conv_norm kv_layernorm layernorm_full_attention_alpha "
        "layernorm_full_attention_beta layernorm_linear_attention_alpha layernorm_linear_attention_beta "
        "linear_attn_bias lm_head_bias mamba_conv_bias mamba_proj_bias mamba_rms_norm qk_layernorm "
        "qkv_bias use_attention_bias use_conv_bias use_qkv_bias weight_share_add_bias "
        "add_full_attention_sink_bias add_swa_attention_sink_bias",
        # Scales, caps and gates are arithmetic inside the attention; a learned sink is one logit per head.
        "apply_query_key_layer_scaling attention_logit_cap attention_multiplier attention_output_gate "
        "attention_softmax_in_fp32 attention_value_scale attn_logit_softcapping attn_output_gate "
        "attn_output_multiplier attn_scale attn_temperature_tuning clip_qkv fp32_residual_connection "
        "max_attn_value mla_scale_kv_lora mla_scale_q_lora mup_attn_multiplier query_pre_attn_scalar "
        "scale_attention_softmax_in_fp32 scale_attn_by_inverse_layer_idx scale_attn_weights "
        "use_attn_scale use_logn_attn use_qk_norm_per_head attention_in_multiplier "
        "attention_out_multiplier key_multiplier lm_head_multiplier ssm_in_multiplier ssm_multipliers "
        "ssm_out_multiplier activation_situ_linear_beta use_full_rank_gate attention_sink attention_sinks",
        # Positions: which angles are applied, not how many entries are kept.
        "indexer_rope_interleave no_rope_layer_interval rope_local_base_freq local_rope_theta "
        "global_rope_theta swa_rope_theta compress_rope_theta",
        # Kernels and numerics: how the same result is computed, and in which pieces.
        "_attn_implementation _attn_implementation_autoset _flash_attn_2_enabled attn_impl "
        "attn_implementation attn_mode attn_uses_sequence_id chunk_size chunk_size_feed_forward "
        "flash_attn gradient_checkpointing_block linear_precision mamba_chunk_size mamba_hidden_act "
        "parallel_attn prefill_chunk_size reorder_and_upcast_attn use_flash_attention use_flash_attn "
        "use_mamba_kernels use_memory_efficient_attention fuse_linear_cross_entropy "
        "attention_softmax_precision time_step_rank mamba_dt_rank dt_rank",
        # Whether and through which class transformers caches; engines always do.
        "cache_implementation pre_allocate_kv_cache use_cache context_window_size is_decoder",
        # Layers with feed-forward experts: which there are and how tokens are routed to them.
        "decoder_sparse_step enable_moe_block expert_layer_offset expert_layer_period "
        "group_limited_greedy interleave_moe_layer_step latent_moe_use_norm mlp_layer_types "
        "moe_block moe_group_size moe_latent_size moe_layer_interval moe_num_shared_experts "
        "moe_shared_expert_intermediate_size moe_shared_expert_overlap n_group n_shared_experts "
        "norm_after_topk_group num_expert_group num_groups_per_expert num_local_experts num_shared_expert "
        "num_shared_experts routed_expert_group share_expert_dim shared_expert_intermediate_size "
        "shared_intermediate_size sparse_step topk_group use_grouped_topk moe_intermediate_group "
        "block_auto_adjust_ff_dim block_dim block_ff_dim block_ffn_dim_multiplier block_multiple_of "
        "block_use_swiglu activation_sparsity_pattern first_sparse_layer",
        # Bottlenecks of the query or of the output projection; neither is cached.
        "o_groups o_lora_rank q_lora_rank qk_head_dim adapter_rank use_shared_attention_adapter",
        # Outputs, heads for other tasks, and decoding options of the saved file.
        "add_classification_head class_num classifier_proj_size num_beam_groups num_reward_heads "
        "output_attentions output_hidden_states prediction_heads pruned_heads problem_type "
        "reset_attention_mask use_weighted_layer_sum tie_lm_head use_head lm_head rm_head head_ffn_ratio "
        "add_cross_attention cross_attention_hidden_size",
        # Ids of tokens and indices of labels.
        "audio_token_index boi_token_index eoa_token_index eoi_token_index ignore_index ignored_index "
        "image_token_index video_token_index pad_token_index image_end_token_index image_start_token_index",
        # How images and sound become tokens: before the language model, or weights that go with it.
        "global_view_pos image_token_compression_method mm_vision_select_layer vision_feature_layer "
        "select_layer use_backbone_lora use_llm_lora use_unified_vision_chunk vision_chunk "
        "compression_ratio insert_layer_id deepstack_visual_indexes encoder_attention_heads "
        "d_conv_image temporal_patch_stride mm_patch_merge_stride use_bidirectional_attention_vision",
        # Acts only where use_sliding_window is true, which is itself read or refused.
        "max_window_layers",
    )
    for name in group.split()
)

FOREIGN = re.compile(
    "vision|visual|vit_|image|img|audio|speech|acoustic|semantic|talker|projector|mm_|quantization|"
    "compression_config|rope_|auto_map|id2label|label2id|task_specific|generation|init_config|"
    "diffusion|tokenizer|peft|token2wav|per_layer_config|ffn_config"
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

    Null, false, zero and empty mean that a feature is off.
    """
    for name, value in source.items():
        if isinstance(value, Mapping):
            if name not in understood and looks_cache_relevant(name) and value:
                yield name
            elif not FOREIGN.search(name.lower()):
                yield from suspicious(value, understood)
        elif name not in understood and looks_cache_relevant(name) and value not in (None, False, 0, "", []):
            yield name
