/** Finds the llama.cpp library in node-llama-cpp's platform packages or a given folder, declares it and checks its ABI. */
import { readdirSync } from "node:fs"
import { createRequire } from "node:module"
import path from "node:path"
import koffi from "koffi"

/** A pointer that only the library can read. */
export interface NativePointer {
  readonly native: never
}

/** Which build to open: `auto` takes a GPU build when one is installed. */
export type LlamaBackend = "auto" | "cpu" | "cuda" | "vulkan" | "metal"

/** The struct layouts below are those of this version; any other is refused. */
const EXPECTED_VERSION = "0.5.0"

interface ModelParameters {
  n_gpu_layers: number
  use_extra_bufts: boolean
  [field: string]: unknown
}

interface ContextParameters {
  n_ctx: number
  n_batch: number
  n_ubatch: number
  n_seq_max: number
  n_outputs_max: number
  n_threads: number
  n_threads_batch: number
  flash_attn_type: number
  type_k: number
  type_v: number
  swa_full: boolean
  kv_unified: boolean
  [field: string]: unknown
}

export interface NativeBatch {
  readonly n_tokens: number
  readonly token: NativePointer
  readonly embd: null
  readonly pos: NativePointer
  readonly n_seq_id: NativePointer
  readonly seq_id: NativePointer
  readonly logits: NativePointer
}

type Native<Call extends (...input: never[]) => unknown> = Call & {
  async(...input: [...Parameters<Call>, (error: Error | null, result: ReturnType<Call>) => void]): void
}

export interface LlamaLibrary {
  readonly packageName: string
  readonly version: string
  readonly modelDefaults: () => ModelParameters
  readonly contextDefaults: () => ContextParameters
  readonly loadModel: Native<(file: string, parameters: ModelParameters) => NativePointer | null>
  readonly freeModel: (model: NativePointer) => void
  readonly createContext: Native<
    (model: NativePointer, parameters: ContextParameters) => NativePointer | null
  >
  readonly freeContext: (context: NativePointer) => void
  /** Freed with its model. */
  readonly loadAdapter: Native<(model: NativePointer, file: string) => NativePointer | null>
  /** Answers zero. */
  readonly setAdapters: (
    context: NativePointer,
    adapters: readonly NativePointer[],
    count: number,
    scales: readonly number[],
  ) => number
  readonly vocabularyOf: (model: NativePointer) => NativePointer
  readonly vocabularySize: (vocabulary: NativePointer) => number
  readonly addsBos: (vocabulary: NativePointer) => boolean
  readonly bosToken: (vocabulary: NativePointer) => number
  readonly tokenText: (vocabulary: NativePointer, token: number) => string | null
  readonly isControlToken: (vocabulary: NativePointer, token: number) => boolean
  readonly tokenize: Native<
    (
      vocabulary: NativePointer,
      text: Buffer,
      byteCount: number,
      tokens: Int32Array,
      tokensMax: number,
      addSpecial: boolean,
      parseSpecial: boolean,
    ) => number
  >
  readonly trainedContext: (model: NativePointer) => number
  readonly layerCount: (model: NativePointer) => number
  /** Whether a back end is loaded that has a GPU to compute on. */
  readonly hasGpu: () => boolean
  readonly isRecurrent: (model: NativePointer) => boolean
  readonly isHybrid: (model: NativePointer) => boolean
  readonly hasEncoder: (model: NativePointer) => boolean
  readonly memoryOf: (context: NativePointer) => NativePointer
  readonly clearMemory: (memory: NativePointer, wipe: boolean) => void
  readonly removeSequence: (memory: NativePointer, sequence: number, start: number, end: number) => boolean
  readonly copySequence: (memory: NativePointer, from: number, to: number, start: number, end: number) => void
  readonly decode: Native<(context: NativePointer, batch: NativeBatch) => number>
  readonly synchronize: Native<(context: NativePointer) => void>
  readonly logitsAt: (context: NativePointer, index: number) => NativePointer | null
  readonly stateBytes: (context: NativePointer, sequence: number, flags: number) => number
  readonly saveState: Native<
    (context: NativePointer, into: Uint8Array, byteCount: number, sequence: number, flags: number) => number
  >
  readonly restoreState: Native<
    (context: NativePointer, from: Uint8Array, byteCount: number, sequence: number, flags: number) => number
  >
}

let opened: { readonly choice: string; readonly library: LlamaLibrary } | undefined

/**
 * Opens the library once per process: its back ends and its log setting are global to the process. A `libraryDir`
 * holds a build that no package brings; its back ends are those that lie beside it.
 */
export function openLlamaLibrary(backend: LlamaBackend = "auto", libraryDir?: string): LlamaLibrary {
  const choice = libraryDir === undefined ? backend : `${backend} from ${libraryDir}`
  if (opened !== undefined) {
    if (opened.choice !== choice) {
      throw new Error(`Cannot open llama.cpp for ${choice}: this process has it open for ${opened.choice}`)
    }
    return opened.library
  }
  const { packageName, folder } =
    libraryDir === undefined ? findBinaries(backend) : givenBinaries(path.resolve(libraryDir))
  // Native calls run on stacks of the binding's own; the 128 KiB that it gives are little for what llama.cpp does on them.
  koffi.config({ sync_stack_size: STACK_BYTES, async_stack_size: STACK_BYTES })
  const library = declare(packageName, folder)
  checkAbi(library)
  opened = { choice, library }
  return library
}

/** Package names to try, best first. Platform names are node-llama-cpp's. */
export function candidatePackages(backend: LlamaBackend, platform: string, arch: string): string[] {
  const system = { linux: "linux", darwin: "mac", win32: "win" }[platform]
  if (system === undefined) return []
  const base = `${system}-${arch === "arm" ? "armv7l" : arch}`
  const gpu =
    system === "mac" ? (arch === "arm64" ? [`${base}-metal`] : []) : [`${base}-cuda`, `${base}-vulkan`]
  // The Apple silicon package serves its processor too: it has no build of its own without Metal.
  const cpu = system === "mac" && arch === "arm64" ? [`${base}-metal`] : [base]
  if (backend === "cpu") return cpu
  if (backend === "auto") return [...new Set([...gpu, ...cpu])]
  return gpu.filter((name) => name.endsWith(`-${backend}`))
}

function findBinaries(backend: LlamaBackend): { packageName: string; folder: string } {
  const names = candidatePackages(backend, process.platform, process.arch)
  for (const name of names) {
    const folder = installedFolder(name)
    if (folder !== undefined) return { packageName: `@node-llama-cpp/${name}`, folder }
  }
  const wanted = names.map((name) => `@node-llama-cpp/${name}`).join(" or ")
  throw new Error(
    `Cannot open llama.cpp (${backend}) on ${process.platform}-${process.arch}: ` +
      (wanted === "" ? "no build exists for this machine" : `not installed; install ${wanted}`),
  )
}

function givenBinaries(folder: string): { packageName: string; folder: string } {
  if (holdsLlama(folder)) return { packageName: folder, folder }
  throw new Error(
    `Cannot open llama.cpp from ${folder}: no libllama there; ` +
      "name the folder that holds libllama, libggml and the back ends",
  )
}

function installedFolder(name: string): string | undefined {
  const require = createRequire(import.meta.url)
  // The platform packages export no package.json from an ESM resolver's view, so their folders are looked up by path.
  for (const root of [require.resolve.paths("@node-llama-cpp/x") ?? []].flat()) {
    const folder = path.join(root, "@node-llama-cpp", name, "bins", name)
    if (holdsLlama(folder)) return folder
  }
  return undefined
}

function holdsLlama(folder: string): boolean {
  try {
    return readdirSync(folder).some((file) => LLAMA_FILE.test(file))
  } catch {
    // Not installed there.
    return false
  }
}

/** GPU packages put their back end into the name: `libllama.cuda.v0.5.0.so`. */
export const LLAMA_FILE = /^(lib)?llama(\.[a-z]+)?(\.v[\d.]+)?\.(so|dylib|dll)$/
const GGML_FILE = /^(lib)?ggml(\.[a-z]+)?(\.v[\d.]+)?\.(so|dylib|dll)$/

function fileOf(folder: string, pattern: RegExp): string {
  const file = readdirSync(folder).find((name) => pattern.test(name))
  if (file === undefined)
    throw new Error(`Cannot open llama.cpp: its package holds no file like ${pattern.source}`)
  return path.join(folder, file)
}

const POINTER = "void *"
/** The most that koffi can be told; only what is touched takes memory. */
const STACK_BYTES = 16 * 1024 * 1024

function declareStructs(): void {
  koffi.struct("llama_model_params", {
    devices: POINTER,
    tensor_buft_overrides: POINTER,
    n_gpu_layers: "int32",
    split_mode: "int32",
    load_mode: "int32",
    lazy_mode: "int32",
    main_gpu: "int32",
    tensor_split: POINTER,
    progress_callback: POINTER,
    progress_callback_user_data: POINTER,
    kv_overrides: POINTER,
    vocab_only: "bool",
    check_tensors: "bool",
    use_extra_bufts: "bool",
    no_host: "bool",
    no_alloc: "bool",
    load_mtp: "bool",
  })
  koffi.struct("llama_context_params", {
    n_ctx: "uint32",
    n_batch: "uint32",
    n_ubatch: "uint32",
    n_seq_max: "uint32",
    n_rs_seq: "uint32",
    n_outputs_max: "uint32",
    n_outputs_max_per_seq: "uint32",
    n_threads: "int32",
    n_threads_batch: "int32",
    ctx_type: "int32",
    rope_scaling_type: "int32",
    pooling_type: "int32",
    attention_type: "int32",
    flash_attn_type: "int32",
    rope_freq_base: "float",
    rope_freq_scale: "float",
    yarn_ext_factor: "float",
    yarn_attn_factor: "float",
    yarn_beta_fast: "float",
    yarn_beta_slow: "float",
    yarn_orig_ctx: "uint32",
    defrag_thold: "float",
    cb_eval: POINTER,
    cb_eval_user_data: POINTER,
    type_k: "int32",
    type_v: "int32",
    abort_callback: POINTER,
    abort_callback_data: POINTER,
    embeddings: "bool",
    offload_kqv: "bool",
    no_perf: "bool",
    op_offload: "bool",
    swa_full: "bool",
    kv_unified: "bool",
    samplers: POINTER,
    n_samplers: "size_t",
    ctx_other: POINTER,
  })
  koffi.struct("llama_batch", {
    n_tokens: "int32",
    token: POINTER,
    embd: POINTER,
    pos: POINTER,
    n_seq_id: POINTER,
    seq_id: POINTER,
    logits: POINTER,
  })
}

function declare(packageName: string, folder: string): LlamaLibrary {
  const llama = koffi.load(fileOf(folder, LLAMA_FILE))
  const ggml = koffi.load(fileOf(folder, GGML_FILE))
  declareStructs()

  // A log callback made in JavaScript aborts the process when another thread logs. llama_time_us is a native function
  // that ignores its arguments: a callback that does nothing.
  llama.func("void llama_log_set(void *callback, void *user)")(llama.symbol("llama_time_us"), null)
  llama.func("void llama_backend_init()")()
  ggml.func("void ggml_backend_load_all_from_path(const char *folder)")(folder)

  return {
    packageName,
    version: String(llama.func("const char *llama_version()")()),
    modelDefaults: llama.func("llama_model_params llama_model_default_params()"),
    contextDefaults: llama.func("llama_context_params llama_context_default_params()"),
    loadModel: llama.func(
      "void *llama_model_load_from_file(const char *file, llama_model_params parameters)",
    ),
    freeModel: llama.func("void llama_model_free(void *model)"),
    createContext: llama.func("void *llama_init_from_model(void *model, llama_context_params parameters)"),
    freeContext: llama.func("void llama_free(void *context)"),
    loadAdapter: llama.func("void *llama_adapter_lora_init(void *model, const char *file)"),
    setAdapters: llama.func(
      "int llama_set_adapters_lora(void *context, void **adapters, size_t count, float *scales)",
    ),
    vocabularyOf: llama.func("void *llama_model_get_vocab(void *model)"),
    vocabularySize: llama.func("int llama_vocab_n_tokens(void *vocabulary)"),
    addsBos: llama.func("bool llama_vocab_get_add_bos(void *vocabulary)"),
    bosToken: llama.func("int llama_vocab_bos(void *vocabulary)"),
    tokenText: llama.func("const char *llama_vocab_get_text(void *vocabulary, int token)"),
    isControlToken: llama.func("bool llama_vocab_is_control(void *vocabulary, int token)"),
    // The text goes as bytes with a length: a C string would end at the first NUL.
    tokenize: llama.func(
      "int llama_tokenize(void *vocabulary, const void *text, int bytes, void *tokens, int max, bool special, bool parse)",
    ),
    trainedContext: llama.func("int llama_model_n_ctx_train(void *model)"),
    layerCount: llama.func("int llama_model_n_layer(void *model)"),
    hasGpu: llama.func("bool llama_supports_gpu_offload()"),
    isRecurrent: llama.func("bool llama_model_is_recurrent(void *model)"),
    isHybrid: llama.func("bool llama_model_is_hybrid(void *model)"),
    hasEncoder: llama.func("bool llama_model_has_encoder(void *model)"),
    memoryOf: llama.func("void *llama_get_memory(void *context)"),
    clearMemory: llama.func("void llama_memory_clear(void *memory, bool wipe)"),
    removeSequence: llama.func("bool llama_memory_seq_rm(void *memory, int sequence, int start, int end)"),
    copySequence: llama.func("void llama_memory_seq_cp(void *memory, int from, int to, int start, int end)"),
    decode: llama.func("int llama_decode(void *context, llama_batch batch)"),
    synchronize: llama.func("void llama_synchronize(void *context)"),
    logitsAt: llama.func("void *llama_get_logits_ith(void *context, int index)"),
    stateBytes: llama.func("size_t llama_state_seq_get_size_ext(void *context, int sequence, uint32 flags)"),
    saveState: llama.func(
      "size_t llama_state_seq_get_data_ext(void *context, void *into, size_t bytes, int sequence, uint32 flags)",
    ),
    restoreState: llama.func(
      "size_t llama_state_seq_set_data_ext(void *context, const void *from, size_t bytes, int sequence, uint32 flags)",
    ),
  }
}

const EXPECTED_CONTEXT_DEFAULTS = {
  n_ctx: 512,
  n_batch: 2048,
  n_ubatch: 512,
  n_seq_max: 1,
  flash_attn_type: -1,
  rope_freq_base: 0,
  defrag_thold: -1,
  type_k: 1,
  type_v: 1,
  offload_kqv: true,
  op_offload: true,
  swa_full: true,
  kv_unified: false,
} as const

const EXPECTED_MODEL_DEFAULTS = {
  n_gpu_layers: -1,
  split_mode: 1,
  main_gpu: 0,
  vocab_only: false,
  check_tensors: false,
  use_extra_bufts: true,
} as const

/** A library of another version would read our structs wrongly and corrupt memory: it is refused before first use. */
export function checkAbi(
  library: Pick<LlamaLibrary, "version" | "packageName" | "modelDefaults" | "contextDefaults">,
): void {
  // A build between releases says so after a hyphen.
  if (library.version.split("-")[0] !== EXPECTED_VERSION) {
    throw abiFault(library, `version ${library.version}`, `version ${EXPECTED_VERSION}`)
  }
  const pairs = [
    ["llama_context_params", library.contextDefaults(), EXPECTED_CONTEXT_DEFAULTS],
    ["llama_model_params", library.modelDefaults(), EXPECTED_MODEL_DEFAULTS],
  ] as const
  for (const [struct, found, expected] of pairs) {
    for (const [field, value] of Object.entries(expected)) {
      if (found[field] !== value) {
        throw abiFault(library, `${struct}.${field} = ${String(found[field])}`, String(value))
      }
    }
  }
}

function abiFault(library: Pick<LlamaLibrary, "packageName">, found: string, expected: string): Error {
  return new Error(
    `Cannot use the llama.cpp in ${library.packageName}: found ${found}, expected ${expected}; ` +
      "install the version of node-llama-cpp that this server pins",
  )
}
