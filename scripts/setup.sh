#!/usr/bin/env bash
# Installs what Muster needs and is not there yet; does nothing, and asks no network, when all is there.
# usage: scripts/setup.sh [build|test|bench|lint|fuzz]...      default: build
#   build  compiler, libraries, libtorch (.venv), the examples' pictures
#   test   build, and GoogleTest, Chromium, the real tools that tests compare with (.venv, .venv-tools)
#   bench  build, and Google Benchmark, valgrind, what to compare with: Lightning, scipy, scikit-image (.venv-peers)
#   lint   build, and clang-format, clang-tidy and the headers of the two above
#   fuzz   build, and Clang with its sanitizers
# environment:
#   MUSTER_TORCH        a folder with libtorch's include/ and lib/: no torch wheel is installed
#   MUSTER_TORCH_INDEX  the package index to take the torch wheel from, such as PyTorch's own index of CPU builds; where
#                       it is unset pip's own configuration counts, and PyPI's wheel is a CUDA build of gigabytes
set -euo pipefail
cd "$(dirname "$0")/.."

sets=" ${*:-build} "
case "$sets" in *" test "* | *" bench "* | *" lint "* | *" fuzz "*) sets="$sets build " ;; esac
for name in $sets; do
  case "$name" in build | test | bench | lint | fuzz) ;; *) sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac
done
wants() { case "$sets" in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

packages=(g++ cmake ninja-build ccache pkg-config python3 python3-venv libgloo-dev nlohmann-json3-dev libyaml-cpp-dev
  libcli11-dev libpng-dev libdeflate-dev libjpeg62-turbo-dev libprotozero-dev zlib1g-dev libssl-dev adwaita-icon-theme)
wheels=(torch==2.13.0)
wheels_alone=(scikit-image==0.26.0) # only its photographs are wanted, so without what it needs to run
tools=()
if wants test; then
  packages+=(libgtest-dev chromium procps iproute2)
  wheels+=(numpy==2.4.6 safetensors==0.8.0 torchmetrics==1.9.0 pycocotools==2.0.11)
  tools+=(wandb==0.31.0 tensorboard==2.21.0)
fi
if wants bench; then packages+=(libbenchmark-dev valgrind); fi
if wants lint; then packages+=(clang-format clang-tidy-16 clang-16 libclang-rt-16-dev libgtest-dev libbenchmark-dev valgrind); fi
if wants fuzz; then packages+=(clang-16 libclang-rt-16-dev); fi
if [ -n "${MUSTER_TORCH:-}" ]; then # torchmetrics would bring the wheel
  kept=()
  for wheel in "${wheels[@]}"; do
    case "$wheel" in torch==* | torchmetrics==*) ;; *) kept+=("$wheel") ;; esac
  done
  wheels=(${kept[@]+"${kept[@]}"})
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() { # WHAT COMMAND...: quiet when it works, its last lines when not
  local what=$1
  shift
  echo "setup: $what"
  if ! "$@" >"$log" 2>&1 </dev/null; then
    grep -v '^WARNING: Location' "$log" | tail -20 >&2
    echo "setup: failed: $*" >&2
    exit 1
  fi
}

install_packages() {
  local missing=() name as_root=(env)
  if ! command -v dpkg-query >/dev/null; then
    echo "setup: this is no Debian system, so these are taken to be there: ${packages[*]}" >&2
    return
  fi
  local installed # dpkg-query fails when it does not know one of them
  installed=" $( (dpkg-query -W -f='${db:Status-Abbrev} ${Package}\n' "${packages[@]}" 2>/dev/null || true) |
    sed -n 's/^ii *//p' | tr '\n' ' ') "
  for name in "${packages[@]}"; do
    case "$installed" in *" $name "*) ;; *) missing+=("$name") ;; esac
  done
  if [ ${#missing[@]} = 0 ]; then return; fi
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "setup: neither root nor sudo here; have these packages installed, then try again: ${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo env)
  fi
  run "the list of packages (apt-get update)" "${as_root[@]}" apt-get update
  run "packages: ${missing[*]}" "${as_root[@]}" DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}"
}

# Whether FOLDER's Python holds NAME==VERSION. RECORD is what pip writes last, so half an installation does not count.
has_wheel() {
  local name=${2%%==*} record
  for record in "$1"/lib/python3*/site-packages/"${name//-/_}-${2##*==}"{,+*}.dist-info/RECORD; do
    if [ -f "$record" ]; then return 0; fi
  done
  return 1
}

install_wheels() { # FOLDER EXTRA-PIP-OPTION|- WHEEL...
  local folder=$1 option=$2 wheel missing=() options=()
  shift 2
  for wheel in "$@"; do has_wheel "$folder" "$wheel" || missing+=("$wheel"); done
  if [ ${#missing[@]} = 0 ] && [ -x "$folder/bin/python" ]; then return; fi
  if ! "$folder/bin/python" -c '' 2>/dev/null; then
    run "a Python environment in $folder" python3 -m venv --clear "$folder"
    missing=("$@")
  fi
  if [ "$option" != - ]; then options+=("$option"); fi
  for wheel in "${missing[@]}"; do
    case "$wheel" in
      torch==*)
        if [ -n "${MUSTER_TORCH_INDEX:-}" ]; then
          run "$wheel into $folder, from $MUSTER_TORCH_INDEX" \
            "$folder/bin/python" -m pip install --index-url "$MUSTER_TORCH_INDEX" "$wheel"
        fi ;;
    esac
  done
  if [ ${#missing[@]} != 0 ]; then
    run "${missing[*]} into $folder" "$folder/bin/python" -m pip install ${options[@]+"${options[@]}"} "${missing[@]}"
  fi
}

# Those that benchmarks compare with, on the torch and the scikit-image of .venv, so that they are not fetched again.
install_peers() {
  local site
  if ! has_wheel .venv torch==2.13.0; then
    echo "setup: .venv holds no torch==2.13.0, so benchmarks run with nothing beside them" >&2
    return
  fi
  if ! .venv-peers/bin/python -c '' 2>/dev/null; then
    run "a Python environment in .venv-peers" python3 -m venv --clear .venv-peers
  fi
  for site in .venv/lib/python3*/site-packages; do
    echo "$PWD/$site" >".venv-peers/${site#.venv/}/torch-of-venv.pth"
  done
  install_wheels .venv-peers - lightning==2.6.6 scipy==1.17.1 lazy-loader==0.4
}

install_packages
if [ ${#wheels[@]} != 0 ]; then install_wheels .venv - "${wheels[@]}"; fi
install_wheels .venv --no-deps "${wheels_alone[@]}"
if [ ${#tools[@]} != 0 ]; then install_wheels .venv-tools - "${tools[@]}"; fi
if wants bench; then install_peers; fi

for picture in astronaut.png chelsea.png coffee.png rocket.jpg; do
  if ! compgen -G ".venv/lib/python3*/site-packages/skimage/data/$picture" >/dev/null; then
    echo "setup: the scikit-image wheel in .venv holds no $picture; remove .venv and try again" >&2
    exit 1
  fi
done
