#!/usr/bin/env bash
# Runs the whole probe on one GPU in under three minutes, checks what it found, and leaves evidence and profile.
#
#     tests/gpu/check.sh [FOLDER]      (default: hardware/probes)
#
# Needs python3 with numpy and torch, and a GPU that torch can use; nothing else, and no network.  Commit what it
# leaves in FOLDER, add "cuda" to VERIFIED in kvcalc/probe/options.py, and build the docs again.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-hardware/probes}
mkdir -p "$folder"
day=$(date -u +%Y-%m-%d)
name=$(python3 -c 'import re, torch; print(re.sub(r"[^a-z0-9]+", "-", torch.cuda.get_device_name(0).lower()).strip("-"))')
evidence=$folder/$name-$day.json
profile=$folder/$name-$day.yaml
began=$(date +%s)
PYTHONUNBUFFERED=1 timeout -k 10 170 python3 -m kvcalc.probe --model llama-3.1-8b --disk "${TMPDIR:-/tmp}" --require-gpu \
    --max-seconds 140 --evidence "$evidence" --profile "$profile"
echo "probe took $(($(date +%s) - began)) s"
python3 tests/gpu/check.py "$evidence" "$profile"
