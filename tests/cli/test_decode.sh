# --decode: who decodes pictures, what is refused, and what is told.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

"$STOKER" sample k --layout kaggle --classes 3 --per-class 10 --quiet || exit 1
small=(--data k --img-size 16 --batch 8)
refused='--decode (gpu|both) needs a GPU, and the device is cpu \(given\); use --decode cpu or auto$'

it "refuses a GPU's decoder on a CPU before any work is done"
for decode in gpu both; do
    for verb in train plan lr doctor; do
        run "$verb" "${small[@]}" --device cpu --decode "$decode" --out r
        expect_exit 2
        expect_err "$refused"
        expect_empty "$OUT"
        expect_no_file r
    done
    run bench loader --data k --img-size 16 --batch 8 --seconds 0.05 --decode "$decode"
    expect_exit 2
    expect_err "$refused"
done
run train "${small[@]}" --decode gpu --out r
expect_exit 2
expect_err '--decode gpu needs a GPU, and the device is cpu \(auto: '
run train "${small[@]}" --decode fpga
expect_exit 2
expect_err 'decode'

it "decodes on the CPU, and says nothing about it"
run train "${small[@]}" --device cpu --epochs 1 --out free
expect_exit 0
expect "there is nothing to tell" [ "$(grep -c decode "$OUT")" = 0 ]
run train "${small[@]}" --device cpu --epochs 1 --decode cpu --out cpu
expect_exit 0
expect_out 'decode cpu'
expect "it is told once, among the choices" [ "$(grep -c 'decode' "$OUT")" = 1 ]
expect_same free/weights/best.safetensors cpu/weights/best.safetensors

it "keeps the choice of a run that is resumed, unless another is given"
expect_file cpu/args.yaml '^decode: cpu'
run train --resume cpu --epochs 2
expect_exit 0
expect_out 'decode cpu \(run\)'
expect_file cpu/args.yaml '^decode: cpu'
run train --resume cpu --epochs 3 --decode auto
expect_exit 0
expect_out '^decode auto: it was cpu$'
run train --resume cpu --epochs 4 --decode both
expect_exit 2
expect_err "--decode both needs a GPU, and the device is cpu"

it "predict has the option, too"
run predict --run free --device cpu --decode both
expect_exit 2
expect_err "$refused"
run predict --run free --device cpu --decode cpu
expect_exit 0

it "verbs that decode for no network do not have it"
for verb in stage sample run; do
    run "$verb" --decode cpu
    expect_exit 2
    run "$verb" --help
    expect "$verb --help lacks it" [ "$(grep -c -- '--decode' "$OUT")" = 0 ]
done
for verb in train predict plan lr doctor 'bench loader'; do
    # shellcheck disable=SC2086  # two words are two arguments
    run $verb --help
    expect_out '--decode'
done

it "bench loader has a device, and measures the processor time of a picture"
run bench loader --help
expect_out '--device auto\|cpu\|cuda'
run bench loader --data k --img-size 16 --batch 8 --seconds 0.05 --device cpu --json
expect_exit 0
expect_json "$OUT"
expect_out '"device_share": null, "jpeg_engines": null, "cpu_seconds_per_image": [0-9.e-]+,'
run bench loader --data k --img-size 16 --batch 8 --epochs 1 --decode cpu
expect_exit 0
expect_out '^cpu time +[0-9]+ us per image$'
run bench loader --data k --seconds 0.05 --device tpu
expect_exit 2
expect_err '--device tpu: give auto, cpu or cuda'

it "lets the GPU decode, and says so in one line"
take_emulated_gpu
export STK_EMU_MEMORY=8G # enough for auto
run train "${small[@]}" --device cuda:0 --epochs 1 --workers 1 --out gpu
expect_exit 0
expect_out '^decode both: 7 JPEG engines of the GPU, and the CPU.s cores'
expect_file gpu/args.yaml '^decode: both  # auto$'
run predict --run gpu --device cuda:0
expect_exit 0
expect_out '^decode both: 7 JPEG engines'
run bench loader --data k --img-size 16 --batch 8 --seconds 0.05 --device cuda:0 --decode gpu --json
expect_exit 0
expect_out '"device_share": [01][0-9.]*, "jpeg_engines": 7'

it "says in one line why a GPU decodes nothing, and refuses what it cannot"
export STK_EMU_JPEG=nomemory
run train "${small[@]}" --device cuda:0 --epochs 1 --workers 1 --out none
expect_exit 0
expect "there is one line" [ "$(grep -c '^decode cpu: ' "$OUT")" = 1 ]
expect_file none/args.yaml '^decode: cpu  # auto$'
run train "${small[@]}" --device cuda:0 --decode gpu --out r
expect_exit 4
expect_err '--decode gpu: cuda:0 cannot decode pictures: .*; use --decode cpu or auto$'
expect_no_file r
run bench loader --data k --img-size 16 --batch 8 --seconds 0.05 --device cuda:0 --json
expect_exit 0
expect_out '"device_share": null, "jpeg_engines": null'
unset STK_EMU_JPEG

# Squares of 80 px: all pictures are less than twice as large, so the CPU decodes them in full size, too.
"$STOKER" sample few --layout kaggle --classes 3 --per-class 5 --quiet || exit 1
large=(--data few --img-size 80 --batch 4 --device cuda:0 --epochs 1 --workers 1 --deterministic)

it "a GPU that fails changes nothing but who decodes"
run train "${large[@]}" --decode cpu --out steady
expect_exit 0
for fault in reject:2 hang; do # with hang, the run gives up on the GPU's decoder after 5 s
    export STK_EMU_JPEG=$fault
    SECONDS=0
    run train "${large[@]}" --out "faulty-$fault"
    expect_exit 0
    expect_out '^decode both: 7 JPEG engines of the GPU; the CPU decodes the rest$'
    expect_out '^submission: .* \(3 rows, from 1 model\)$'
    expect_same steady/weights/best.safetensors "faulty-$fault/weights/best.safetensors"
    expect_same steady/validation.csv "faulty-$fault/validation.csv"
done
expect "the GPU that hung was waited for" [ "$SECONDS" -ge 5 ]
unset STK_EMU_JPEG

it "goes on with the GPU's decoder in a run that is resumed"
run train "${small[@]}" --device cuda:0 --decode gpu --epochs 1 --workers 1 --out gpu-only
expect_exit 0
expect_out '^decode gpu: 7 JPEG engines of the GPU; the CPU decodes the rest$'
run train --resume gpu-only --epochs 2
expect_exit 0
expect_out 'decode gpu \(run\)'
expect_out '^decode gpu: 7 JPEG engines of the GPU'
expect_out '^epoch 2/2 '
expect_file gpu-only/args.yaml '^decode: gpu'

it "a GPU without engines decodes with its processors"
export STK_EMU_JPEG=noengine
run predict --run gpu-only --device cuda:0
expect_exit 0
expect_out "^decode both: the GPU's processors, and the CPU's cores$"
run bench loader --data k --img-size 16 --batch 8 --seconds 0.05 --device cuda:0 --decode gpu --json
expect_exit 0
expect_out '"device_share": [01][0-9.]*, "jpeg_engines": 0'
unset STK_EMU_JPEG

it "works without nvJPEG, and says how to get it"
mkdir without
ln -s "$STOKER_CUDA_LIBS"/* without
rm without/libnvjpeg.so.13
missing='no libnvjpeg\.so\.13 was found in .*nvidia-nvjpeg'
export STOKER_CUDA_LIBS=$PWD/without
run predict --run gpu-only --device cuda:0
expect_exit 0
expect "there is one line" [ "$(grep -c '^decode' "$OUT")" = 1 ]
expect_out "^decode cpu: $missing"
run train "${small[@]}" --device cuda:0 --decode gpu --out r
expect_exit 4
expect_err "--decode gpu: cuda:0 cannot decode pictures: $missing.*; use --decode cpu or auto\$"
expect_no_file r

finish
