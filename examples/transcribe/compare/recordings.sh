#!/usr/bin/env bash
# Makes the five recordings that transcribe.py is run on: 16,000 samples a second in one channel.
#   recordings.sh FOLDER
# Needs Debian's packages pocketsphinx-testdata (readings from LibriVox, in the public domain), espeak-ng and sox.
set -euo pipefail
mkdir -p "${1:?usage: recordings.sh FOLDER}"
cd "$1"
read_aloud=/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb
for part in 0870 0890 0920; do cp "$read_aloud-$part.wav" "$part.wav"; done
espeak-ng --stdout "Attention lets every word look at every other word. A mask hides what must not be seen." | sox -t wav - -r 16000 spoken.wav
parts=("$read_aloud"-{0870,0880,0890,0920,0930}.wav)
sox "${parts[@]}" "${parts[@]}" "$read_aloud-0920.wav" "$read_aloud-0870.wav" long.wav # 62.6 s
