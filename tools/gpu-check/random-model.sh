# shellcheck shell=sh disable=SC2034,SC2154 # sourced by gpu-check.sh, which sets the other variables
# A language model of a given shape with random weights: a Hugging Face checkpoint that the shell
# writes on the GPU's machine. All weights are copies of one block of random bfloat16 numbers, which
# pack has made. With zeros, a GPU would need less power and clock higher than with a real model.

# shape_of NAME: sets the sizes of a model: those of Llama 3.2 1B, of Llama 3.1 8B, or tiny ones.
shape_of() {
    case $1 in
    1b) hidden=2048 inner=8192 layers=16 heads=32 kv_heads=8 dim=64 vocab=128256 tied=true ;;
    8b) hidden=4096 inner=14336 layers=32 heads=32 kv_heads=8 dim=128 vocab=128256 tied=false ;;
    *) hidden=64 inner=128 layers=2 heads=4 kv_heads=2 dim=16 vocab=512 tied=true ;;
    esac
    queries=$((heads * dim)) keys=$((kv_heads * dim))
    # Bytes of the weights of one layer, and of those outside the layers.
    layer_bytes=$((2 * hidden * (2 * queries + 2 * keys + 3 * inner + 2)))
    other_bytes=$((2 * hidden * (vocab + 1)))
    [ $tied = true ] || other_bytes=$((other_bytes + 2 * hidden * vocab))
}

# tensor NAME ROWS [COLUMNS]: prints its entry in the header, and moves `offset` behind its data.
tensor() {
    printf '%s"%s":{"dtype":"BF16","shape":[%s],"data_offsets":[%s,%s]}' "$comma" "$1" \
        "$2${3:+,$3}" "$offset" $((offset + 2 * $2 * ${3:-1}))
    offset=$((offset + 2 * $2 * ${3:-1})) comma=,
}

# tensors LAYERS: prints the header of the file with the weights.
tensors() {
    offset=0 comma="" i=0
    printf '{'
    tensor model.embed_tokens.weight "$vocab" "$hidden"
    [ "$tied" = true ] || tensor lm_head.weight "$vocab" "$hidden"
    tensor model.norm.weight "$hidden"
    while [ $i -lt "$1" ]; do
        tensor model.layers.$i.self_attn.q_proj.weight "$queries" "$hidden"
        tensor model.layers.$i.self_attn.k_proj.weight "$keys" "$hidden"
        tensor model.layers.$i.self_attn.v_proj.weight "$keys" "$hidden"
        tensor model.layers.$i.self_attn.o_proj.weight "$hidden" "$queries"
        tensor model.layers.$i.mlp.gate_proj.weight "$inner" "$hidden"
        tensor model.layers.$i.mlp.up_proj.weight "$inner" "$hidden"
        tensor model.layers.$i.mlp.down_proj.weight "$hidden" "$inner"
        tensor model.layers.$i.input_layernorm.weight "$hidden"
        tensor model.layers.$i.post_attention_layernorm.weight "$hidden"
        i=$((i + 1))
    done
    printf '}'
}

# header LAYERS: as tensors, with spaces up to a multiple of 8 bytes, so that the data is aligned.
header() {
    text=$(tensors "$1")
    printf '%s%*s' "$text" $(((8 - ${#text} % 8) % 8)) ""
}

# little_endian N: prints N as 8 bytes.
little_endian() {
    rest=$1
    for _ in 1 2 3 4 5 6 7 8; do
        # shellcheck disable=SC2059 # the byte as an octal escape
        printf "\\$(printf %03o $((rest % 256)))"
        rest=$((rest / 256))
    done
}

# random_bytes N: prints N bytes of random bfloat16 numbers. Returns 124 if the step's time is over.
random_bytes() {
    block=$folder/random.bf16
    block_size=$(wc -c <"$block")
    n_blocks=$(($1 / block_size))
    while [ $n_blocks -ge 8 ]; do
        if [ $((deadline - $(now))) -le 0 ] || [ -e "$out/.stop" ]; then return 124; fi
        cat "$block" "$block" "$block" "$block" "$block" "$block" "$block" "$block" || return 1
        n_blocks=$((n_blocks - 8))
    done
    while [ $n_blocks -gt 0 ]; do
        cat "$block" || return 1
        n_blocks=$((n_blocks - 1))
    done
    head -c $(($1 % block_size)) "$block"
}

# free_kib FOLDER: prints how many KiB may be written there. What is in /dev/shm is in memory.
free_kib() {
    free=$(df -Pk "$1" 2>/dev/null | awk 'NR == 2 { print $4 }')
    if [ "$1" = /dev/shm ]; then
        memory=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
        limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null)
        case $limit in '' | *[!0-9]*) ;; *)
            limit=$(((limit - $(cat /sys/fs/cgroup/memory.current)) / 1024))
            [ "$limit" -ge "${memory:-0}" ] || memory=$limit ;;
        esac
        # The other half is for the program that loads the model.
        memory=$((${memory:-0} / 2))
        [ "$memory" -ge "${free:-0}" ] || free=$memory
    fi
    echo "${free:-0}"
}

# memory_kib DEVICE: prints the memory of a device, from its facts; 0: unknown
memory_kib() {
    sed -n "/^$1\(:0\)\{0,1\} /,/^[a-z]/p" "$out/devices.log" |
        sed -n 's/^.*  memory  *\([0-9]*\) \([KMGT]\)iB$/\1 \2/p' | head -n 1 |
        awk '{ n = $1; if ($2 != "K") n *= 1024; if ($2 == "G" || $2 == "T") n *= 1024
               if ($2 == "T") n *= 1024 } END { printf "%d\n", n }'
}

# random_model SHAPE DEVICE: makes the model, unless it exists, and sets `model` to its folder,
# `model_bytes` to the size of its weights, `step_bytes` to how many of them a step of decoding
# reads, and `model_layers` to, for example, "12 of 32 layers". It has fewer layers if the device, or
# every place for the file, is too small for all of them. The file is in memory (/dev/shm) if there is
# enough. --scratch sets another place.
random_model() {
    shape_of "$1"
    for place in /dev/shm "$elsewhere" "$out"; do
        model=$place/ree-gpu-check-$$/$1
        [ ! -f "$model/model.safetensors" ] || break
    done
    [ -f "$model/model.safetensors" ] || write_model "$1" "$2" || return
    n=$(cat "$model/layers")
    model_bytes=$((other_bytes + n * layer_bytes)) model_layers="$n of $layers layers"
    step_bytes=$model_bytes
    # A step reads one row of the embedding; if tied, the last product reads all of it.
    [ $tied = true ] || step_bytes=$((model_bytes - 2 * hidden * (vocab - 1)))
}

# best_place DEVICE: sets `place` to where a model can have the most layers, and `n` to their number.
# Fails if there is none. Omits the places in `refused`.
best_place() {
    most=$(($(memory_kib "$1") * 8 / 10)) place="" n=0
    for candidate in /dev/shm "$elsewhere" "$out"; do
        if [ "$candidate" = /dev/shm ] && [ -n "$scratch" ]; then continue; fi
        case $refused in *":$candidate:"*) continue ;; esac
        free=$(($(free_kib "$candidate") * 9 / 10))
        [ $most = 0 ] || [ $free -le $most ] || free=$most
        fit=$(((free - other_bytes / 1024) * 1024 / layer_bytes))
        [ $fit -le "$layers" ] || fit=$layers
        if [ "$fit" -gt "$n" ]; then n=$fit place=$candidate; fi
    done
    [ -n "$place" ]
}

# write_model SHAPE DEVICE: as random_model, after shape_of. If a place cannot be written to (rights, a
# quota, a limit of memory), it takes the next one.
write_model() {
    refused=: reason="no place for a model of this shape (--scratch)"
    while best_place "$2"; do
        model=$place/ree-gpu-check-$$/$1
        if message=$({ mkdir -p "$model" && mktemp "$model/weights.XXXXXX"; } 2>&1); then
            new=$message # of its own: an earlier writer may still run
            message=$(write_files "$n" 2>&1 >"$new") && return
            rc=$?
            rm -f "$new"
            # 143: a signal for the whole process group
            if [ $rc = 124 ] || [ $rc = 143 ] || [ -e "$out/.stop" ]; then
                echo "writing a random model in $place"
                return 124
            fi
        fi
        refused=$refused$place:
        reason="no random model in $place: $(printf '%s\n' "$message" | head -n 1)"
        echo "$reason"
    done
    echo "skipped: $reason"
    return 77
}

# write_files LAYERS: prints the file with the weights, and writes the others into $model. $new, which
# has the weights, gets its name last, so that a model that was cut off is made again.
write_files() {
    header "$1" >"$model/header" || return 1
    little_endian "$(wc -c <"$model/header")" && cat "$model/header" || return 1
    random_bytes $((other_bytes + $1 * layer_bytes)) || return
    echo "$1" >"$model/layers" && cat >"$model/config.json" <<END || return 1
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "torch_dtype": "bfloat16",
 "hidden_size": $hidden, "intermediate_size": $inner, "num_hidden_layers": $1,
 "num_attention_heads": $heads, "num_key_value_heads": $kv_heads, "head_dim": $dim,
 "vocab_size": $vocab, "tie_word_embeddings": $tied, "hidden_act": "silu",
 "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "max_position_embeddings": 8192,
 "bos_token_id": 0, "eos_token_id": 1}
END
    mv "$new" "$model/model.safetensors"
}

# remove_models: removes every model that random_model made.
remove_models() {
    for place in /dev/shm "$elsewhere" "$out"; do rm -rf "$place/ree-gpu-check-$$"; done
}

# remove_old_models: removes the models of runs that were killed.
remove_old_models() {
    for place in /dev/shm "$elsewhere" "$out"; do
        for old in "$place"/ree-gpu-check-*; do
            pid=${old##*-}
            case $pid in '' | *[!0-9]*) continue ;; esac
            [ -d "/proc/$pid" ] || [ ! -d /proc/self ] || rm -rf "$old" 2>/dev/null
        done
    done
}
