"""ree-run uses libree as any other program does: every symbol of libree that its object files need
is declared in a public header. LEFTOVERS lists the exceptions."""
import argparse
import os
import shutil
import subprocess
import sys

from declared import declared, public_headers

# Receipts, requests, checkpoints and verification, which have no public header yet. An entry that
# no object file needs is an error, so the list stays up to date.
LEFTOVERS = set("""
    ree_answer_begin ree_answer_end ree_answer_finish ree_answer_held_back ree_answer_push
    ree_arena_finish ree_arena_init ree_dsse_check ree_dsse_write ree_eos_ids ree_file_abandon
    ree_file_commit ree_file_write_secret ree_float_env_set ree_hex ree_key_check ree_key_create
    ree_key_public ree_model_hashes_make ree_receipt_blind ree_receipt_check ree_receipt_draft
    ree_receipt_encode_text ree_receipt_finish ree_receipt_init ree_receipt_load
    ree_receipt_make_tensors ree_receipt_make_text ree_receipt_set_salt ree_receipt_sign
    ree_receipt_try_text ree_receipt_write ree_request_finish ree_request_init ree_request_load
    ree_request_seal ree_request_write ree_roles_check_bound ree_strbuf_finish
    ree_strbuf_init ree_strbuf_printf ree_text_checkpoint_compare
    ree_text_checkpoint_finish ree_text_checkpoint_is_done ree_text_checkpoint_load
    ree_text_checkpoint_write ree_text_json_parse ree_text_json_restore ree_unhex
    ree_verification_finish ree_verification_init ree_verification_verdict ree_verify_add
    ree_verify_key ree_verify_model ree_verify_receipt ree_verify_request ree_verify_tensors
    ree_verify_text ree_verify_trace ree_verify_verdict_name""".split())

parser = argparse.ArgumentParser()
parser.add_argument("--source", required=True)
parser.add_argument("objects", nargs="+")
args = parser.parse_args()
nm = shutil.which("nm")
if not nm:
    print("skipped: there is no nm")
    sys.exit(77)

defined, needed = set(), {}
for path in args.objects:
    text = subprocess.run([nm, path], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        kind, name = line.split()[-2:]
        if kind in "TDBRVW":
            defined.add(name)
        elif kind == "U" and name.startswith("ree_"):
            needed.setdefault(name, os.path.basename(path))
functions, variables = declared(public_headers(os.path.join(args.source, "src")))
taken = {name for name in needed if name not in defined}
internal = taken - set(functions) - set(variables)
wrong = [f"{needed[name]} uses {name}, which no public header declares"
         for name in sorted(internal - LEFTOVERS)]
wrong += [f"{name} is listed as a leftover, but is not needed" for name in sorted(LEFTOVERS - internal)]
if len(taken) < 100:
    wrong.append(f"only {len(taken)} symbols were found")
if wrong:
    sys.exit("\n".join(wrong))
print(f"{len(taken)} symbols of libree, {len(internal)} of them without a public header")
