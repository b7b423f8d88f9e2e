"""A small language model of random weights in a GGUF file, and llama.cpp: gguf_file.py make|read FILE"""
import os, sys

WORDS, WIDTH, LAYERS, HEADS, INNER = 32000, 512, 4, 8, 1376


def make(path):
    import gguf, numpy
    random = numpy.random.default_rng(1)
    file = gguf.GGUFWriter(path, "llama")
    file.add_context_length(512)
    file.add_embedding_length(WIDTH)
    file.add_block_count(LAYERS)
    file.add_feed_forward_length(INNER)
    file.add_head_count(HEADS)
    file.add_head_count_kv(HEADS)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_rope_dimension_count(WIDTH // HEADS)
    file.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    special = [b"<unk>", b"<s>", b"</s>"] + [f"<0x{byte:02X}>".encode() for byte in range(256)]
    words = [f"\u2581w{number}".encode() for number in range(WORDS - len(special))]
    kinds = [gguf.TokenType.UNKNOWN] + [gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.BYTE] * 256
    file.add_tokenizer_model("llama")
    file.add_token_list(special + words)
    file.add_token_scores([0.0] * len(special) + [-float(number) for number in range(len(words))])
    file.add_token_types(kinds + [gguf.TokenType.NORMAL] * len(words))
    file.add_unk_token_id(0)
    file.add_bos_token_id(1)
    file.add_eos_token_id(2)

    def matrix(name, *shape):
        file.add_tensor(name, (random.standard_normal(shape, numpy.float32) * 0.05).astype(numpy.float16))

    def norm(name):
        file.add_tensor(name, numpy.ones(WIDTH, numpy.float32))

    matrix("token_embd.weight", WORDS, WIDTH)
    norm("output_norm.weight")
    matrix("output.weight", WORDS, WIDTH)
    for layer in (f"blk.{number}." for number in range(LAYERS)):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            matrix(f"{layer}{name}.weight", WIDTH, WIDTH)
        matrix(layer + "ffn_gate.weight", INNER, WIDTH)
        matrix(layer + "ffn_up.weight", INNER, WIDTH)
        matrix(layer + "ffn_down.weight", WIDTH, INNER)
        norm(layer + "attn_norm.weight")
        norm(layer + "ffn_norm.weight")
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
    # The llama.cpp of ctransformers knows version 2, which differs from 3 in nothing that is written here.
    with open(path, "r+b") as written:
        written.seek(4)
        written.write(bytes([2]))


def read(path):
    from ctransformers import AutoModelForCausalLM
    model = AutoModelForCausalLM.from_pretrained(path, model_type="llama", lib="avx2", threads=1, context_length=256)
    print(model("w1 w2 w3", max_new_tokens=8, top_k=1, seed=1), flush=True)
    # Its clean-up at the interpreter's end crashes, with or without precache.
    os._exit(0)


{"make": make, "read": read}[sys.argv[1]](sys.argv[2])
