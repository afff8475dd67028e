/** GGUF models as the gateway sees them: a process per model, started when first used. */
import { PeerGone } from "../../base/peer/peer.ts"
import { Supervisor, childChannel } from "../../base/peer/supervisor.ts"
import { Fault } from "../../contract/errors.ts"
import { type EngineClient, cannotStart, engineClient, retryOnce } from "../engine-client.ts"
import type { GeneratorService } from "./child.ts"
import type { EmbedEngine, EngineStats, GenerateEngine, ModelFacts, ScoreEngine } from "../engine.ts"
import type { GenerationOptions } from "./local-model.ts"
import { refuseTooLong } from "./prompt-length.ts"

/** Without an answered ping for this long the process is killed; large prompts and grammars are prepared in one go. */
const silenceMsMaxDefault = 60_000

/** Templates, tokens and grammars of one request; sizes are bounded so that it takes far less. */
export const sizesMsMax = 30_000

interface LocalEngineOptions extends GenerationOptions {
  readonly silenceMsMax?: number
  readonly onDeath?: (reason: string) => void
}

/** All ports in one: a model either decides and generates, or embeds, and refuses the other. */
export class LocalEngine implements ScoreEngine, GenerateEngine, EmbedEngine {
  readonly #peer: Supervisor<GeneratorService>
  readonly #client: EngineClient

  /** Loading the model takes as long as it takes; only then do sizes have their limit. */
  #isLoaded = false
  #stats: EngineStats | undefined

  constructor({ onDeath, silenceMsMax = silenceMsMaxDefault, ...open }: LocalEngineOptions) {
    this.#peer = new Supervisor<GeneratorService>({
      spawn: () => childChannel(new URL("./child.ts", import.meta.url)),
      open,
      silenceMsMax,
      onDeath: (reason) => {
        this.#isLoaded = false
        this.#stats = undefined
        onDeath?.(reason)
      },
      // The child's own `status` made it.
      onStatus: (told) => (this.#stats = told as EngineStats | undefined),
    })
    this.#client = engineClient(this.#peer, "", () => (this.#isLoaded ? sizesMsMax : null))
  }

  /** Of the present process; undefined before first use. */
  get pid(): number | undefined {
    return this.#peer.pid
  }

  /** Rejects where the model cannot be loaded; the first use then says the same. */
  async load(): Promise<void> {
    await this.#peer.ready().catch((error: unknown) => {
      throw error instanceof PeerGone ? cannotStart(error) : error
    })
  }

  async facts(): Promise<ModelFacts> {
    await this.load()
    if (this.#peer.opened) return this.#peer.opened.facts
    throw new Fault("inference_failed", "Cannot decide with the model: it embeds")
  }

  /** As of the last answered ping of the present process, once it has decided something. */
  stats(): (EngineStats & { readonly restarts: number }) | undefined {
    return this.#stats && { ...this.#stats, restarts: this.#peer.restarts }
  }

  /** Scoring is idempotent: what a dying process took with it is done again, once. */
  async score(...[work, call]: Parameters<ScoreEngine["score"]>): ReturnType<ScoreEngine["score"]> {
    return await retryOnce(call.signal, async () => await this.#client.scorer.score(work, call))
  }

  async *generate(
    ...[work, call]: Parameters<GenerateEngine["generate"]>
  ): ReturnType<GenerateEngine["generate"]> {
    // Before it is copied to the process, which serves every organization.
    if (this.#peer.opened) refuseTooLong(this.#peer.opened.limits, work)
    const admit: typeof call.admit = async (sizes) => {
      this.#isLoaded = true
      return await call.admit(sizes)
    }
    yield* this.#client.generator.generate(work, { ...call, admit })
  }

  async embed(...[work, call]: Parameters<EmbedEngine["embed"]>): ReturnType<EmbedEngine["embed"]> {
    return await this.#client.embedder.embed(work, call)
  }

  async close(): Promise<void> {
    await this.#peer.close()
  }
}
