/** Local generation and embeddings as the gateway sees them: a process per model, started when first used. */
import { Supervisor, childChannel } from "../../base/peer/supervisor.ts"
import { type EngineClient, engineClient } from "../engine-client.ts"
import type { GeneratorService } from "./child.ts"
import type { EmbedEngine, GenerateEngine } from "../engine.ts"
import type { GenerationOptions } from "./local-model.ts"

/** Without an answered ping for this long the process is killed; large prompts and grammars are prepared in one go. */
const silenceMsMax = 60_000

/** Templates, tokens and grammars of one request; sizes are bounded so that it takes far less. */
export const sizesMsMax = 30_000

interface LocalEngineOptions extends GenerationOptions {
  readonly onDeath?: (reason: string) => void
}

/** Both ports in one: a model either generates or embeds, and refuses the other. */
export class LocalEngine implements GenerateEngine, EmbedEngine {
  readonly #peer: Supervisor<GeneratorService>
  readonly #client: EngineClient

  /** Loading the model takes as long as it takes; only then do sizes have their limit. */
  #isLoaded = false

  constructor({ onDeath, ...open }: LocalEngineOptions) {
    this.#peer = new Supervisor<GeneratorService>({
      spawn: () => childChannel(new URL("./child.ts", import.meta.url)),
      open,
      silenceMsMax,
      onDeath: (reason) => {
        this.#isLoaded = false
        onDeath?.(reason)
      },
    })
    this.#client = engineClient(this.#peer, "", () => (this.#isLoaded ? sizesMsMax : null))
  }

  /** Of the present process; undefined before first use. */
  get pid(): number | undefined {
    return this.#peer.pid
  }

  /** Rejects where the model cannot be loaded; the first use then says the same. */
  async load(): Promise<void> {
    await this.#peer.ready()
  }

  async *generate(
    ...[work, call]: Parameters<GenerateEngine["generate"]>
  ): ReturnType<GenerateEngine["generate"]> {
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
