"""Checks the sources: each function of ree.h begins with REE_FLOAT_ENV_API(), or is listed here
because it computes nothing with floats. Each OpenMP region and the body of each parallel loop begin
with REE_FLOAT_ENV_WORKER(). Each call of a function pointer from ree.h follows
REE_FLOAT_ENV_CALLBACK(). Progress is reported by ree_progress_report only, which does not lose the
request to cancel."""
import argparse
import glob
import os
import re
import sys

from declared import declared, public_headers

# Functions that compute nothing with floats, call no driver and start no thread.
WITHOUT = set("""
    ree_alloc ree_chat_families ree_decoder_destroy ree_device_name ree_dtype_bits ree_dtype_name
    ree_dtype_size ree_finish_name ree_free ree_generation_finish ree_generator_info
    ree_generator_session ree_model_destroy ree_model_input ree_model_ir_version ree_model_metadata
    ree_model_n_inputs ree_model_n_op_counts ree_model_n_outputs ree_model_notes ree_model_op_counts
    ree_model_opset ree_model_output ree_model_weight_bytes ree_numerics_version
    ree_operation_set_name ree_ranks_n ree_ranks_report ree_sequence_append ree_set_allocator
    ree_set_log ree_status_name ree_tensor_finish ree_tensor_init ree_text_tables ree_tokenizer_bos
    ree_tokenizer_chat_family ree_tokenizer_destroy ree_tokenizer_eos ree_tokenizer_id
    ree_tokenizer_is_special ree_tokenizer_sha256 ree_tokenizer_sha256_version_1 ree_tokenizer_token ree_tokenizer_vocab_size
    ree_checkpoint_close ree_checkpoint_destroy ree_completion_generation ree_completion_n_prompts
    ree_completion_prompt_text ree_completion_stats ree_completion_text ree_device_operation_set
    ree_generator_model ree_prompts_add_ids ree_prompts_destroy ree_prompts_is_chat ree_prompts_list
    ree_receipt_destroy ree_receipt_has_root ree_receipt_info ree_receipt_set_salt ree_request_destroy ree_request_info
    ree_verification_checks ree_verification_is_decided ree_verification_model ree_verification_reason
    ree_verification_runs ree_verification_stepwise ree_verification_tokenizer ree_verification_verdict
    ree_verify_verdict_name
    ree_benchmark_has ree_cache_path ree_claim_destroy ree_claim_info ree_claim_kind_name
    ree_comparison_node ree_comparison_result ree_diff_kind_name ree_dispute_kind_name
    ree_file_abandon_named ree_file_is_private_key ree_file_read_small ree_file_write
    ree_generator_pipeline ree_model_find_input ree_pipeline_n_stages ree_pipeline_stage_end
    ree_plan_branch ree_plan_info ree_plan_stage ree_recording_n_steps ree_tensor_retype
    ree_trace_destroy ree_trace_info ree_trace_input_name ree_trace_inputs_agree ree_trace_node
    ree_trace_node_differs ree_trace_value_agrees ree_trace_value_text ree_ulp_range
    ree_verdict_text ree_transport_n_ranks
    ree_transport_rank ree_transport_started ree_version
    ree_dataset_tensors ree_training_info ree_training_receipt_info
    ree_training_verification_checks ree_training_verification_steps
    ree_training_verification_verdict""".split())
# The modules of libree whose callbacks are checked. Callbacks of others are ree-run's; a device's
# are ree's own.
CALLBACK_FOLDERS = ("graph/", "src/base/", "src/generate/", "src/session/", "src/text/", "src/receipt/",
                    "src/pipeline/", "src/transport/", "src/ranks/", "src/trace/", "src/train/", "src/dispute/", "src/plan/",
                    "src/bench/")
# report_progress, report_program and report_kernel are called as callbacks themselves.
CALLBACK_EXCEPTIONS = {("src/pipeline/pipeline.c", name) for name in ("report", "on_program", "on_kernel")}

parser = argparse.ArgumentParser()
parser.add_argument("--source", required=True)
args = parser.parse_args()
wrong = []


def read(path):
    with open(os.path.join(args.source, path)) as file:
        return file.read()


def functions_enter(header, files):
    functions, _ = declared(header)
    for name in sorted(WITHOUT - set(functions)):
        wrong.append(f"{name} is listed, but not in ree.h")
    for name in functions:
        definition = re.compile(rf"^[a-z][^;{{}}=]*\b{name}\([^{{}};]*\{{\n *(.*)\n", re.M)
        # Most files do not have the name; searching them with the expression would take most of the time.
        found = [(path, m.group(1)) for path, text in files.items() if f"{name}(" in text for m in definition.finditer(text)]
        if len(found) != 1:
            wrong.append(f"{name}: {len(found)} definitions")
            continue
        path, first = found[0]
        enters = first == "REE_FLOAT_ENV_API();"
        if name in WITHOUT and enters:
            wrong.append(f"{path}: {name} is listed as one that does not enter the environment")
        elif name not in WITHOUT and not enters:
            wrong.append(f"{path}: {name} does not begin with REE_FLOAT_ENV_API()")
    return len(functions)


def regions_enter(files):
    n = 0
    for path, text in files.items():
        for m in re.finditer(r"^ *#pragma omp parallel( for)?\b(?:[^\n]*\\\n)*[^\n]*\n", text, re.M):
            n += 1
            begin = r" *for \([^\n]*\{\n" if m.group(1) else r" *\{\n"
            if not re.match(begin + r" *REE_FLOAT_ENV_WORKER\(\);\n", text[m.end():]):
                line = text.count("\n", 0, m.start()) + 1
                wrong.append(f"{path}:{line}: the region does not begin with REE_FLOAT_ENV_WORKER()")
    return n


def callbacks_leave(header, files):
    pointers = set(re.findall(r"\(\*((?:on|is)_\w+|report|log)\)", header))
    n, found, exceptions = 0, set(), set()
    for path, text in files.items():
        if not path.startswith(CALLBACK_FOLDERS):
            continue
        lines = text.split("\n")
        for i, line in enumerate(lines):
            for name in re.findall(r"(?:->|\.)(\w+)\(", line) + re.findall(r"^ *(?:return )?(\w+)\(user,", line):
                if (path, name) in CALLBACK_EXCEPTIONS:
                    exceptions.add((path, name))
                    continue
                if name not in pointers:
                    continue
                n += 1
                found.add(name)
                if name == "report" and path != "src/base/progress.c":
                    wrong.append(f"{path}:{i + 1}: report is called without ree_progress_report")
                if "REE_FLOAT_ENV_CALLBACK();" not in lines[i - 1]:
                    wrong.append(f"{path}:{i + 1}: {name} is called without REE_FLOAT_ENV_CALLBACK()")
    for name in sorted(pointers - found):
        wrong.append(f"no call of {name} was found")
    for path, name in sorted(CALLBACK_EXCEPTIONS - exceptions):
        wrong.append(f"{path}: {name} is an exception, but no call of it was found")
    return n


paths = [os.path.relpath(path, args.source) for folder in ("src", "graph")
         for path in glob.glob(os.path.join(args.source, folder, "**/*.c"), recursive=True)]
files = {path: read(path) for path in sorted(paths)}
header = public_headers(os.path.join(args.source, "src"))
counts = (functions_enter(header, files), regions_enter(files), callbacks_leave(header, files))
if wrong:
    sys.exit("\n".join(wrong))
print(f"{counts[0]} functions, {len(WITHOUT)} of them without floats; {counts[1]} regions; {counts[2]} calls of pointers")
