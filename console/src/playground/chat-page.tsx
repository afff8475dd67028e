/** Chat: a conversation whose answers appear as they are written. */
import { useQuery } from "@tanstack/react-query"
import { type FormEvent, type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react"
import { rememberSequence } from "../analytics/recent.ts"
import { SequenceLink } from "../analytics/sequence-link.tsx"
import { Button } from "../parts/button.tsx"
import { CopyButton } from "../parts/copy-button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { AreaField } from "../parts/field.tsx"
import { count, decimal, milliseconds } from "../parts/format.ts"
import { useHashLink } from "../parts/hash-link.ts"
import { NumberField } from "../parts/number-field.tsx"
import { Empty, useTitle } from "../parts/page.tsx"
import { numberOf, readNumber } from "../parts/typed-number.ts"
import { modelsQuery, useBrowserStorage, useOrganization, useTabStorage } from "../session.ts"
import { keepChat, keptChat, unpackChat } from "./chat-draft.ts"
import { ModelSelect } from "./model-select.tsx"
import { firstModel } from "./models.ts"
import { ShippedModelNotice } from "./shipped-model-notice.tsx"
import { type ChatMessage, streamChat } from "./stream.ts"
import { T } from "../i18n/sentence.tsx"
import { t, tn } from "../i18n/translate.ts"

interface Settings {
  readonly model: string
  readonly system: string
  readonly temperature: string
  readonly tokensMax: string
}

const temperatureBounds = { min: 0, max: 2, required: true }
const tokensBounds = { min: 1, max: 1_000_000, required: true }

/** What keeps the next message from being sent. */
function whatIsWrong({ temperature, tokensMax }: Settings): string | null {
  const [first, second] = [
    readNumber(temperature, "number", temperatureBounds).problem,
    readNumber(tokensMax, "whole", tokensBounds).problem,
  ]
  if (first !== null) return t("Temperature: {first}", { first })
  return second === null ? null : t("Most tokens: {second}", { second })
}

const defaults: Settings = { model: "", system: "", temperature: "0.7", tokensMax: "256" }

export function ChatPage(): ReactNode {
  useTitle(t("Chat"))
  const { id: orgId } = useOrganization()
  const models = useQuery(modelsQuery(orgId)).data ?? []
  const tab = useTabStorage()
  const [kept] = useState(() => keptChat(tab))
  const [settings, setSettings] = useState({ ...defaults, model: kept.model, system: kept.system })
  const model = settings.model || firstModel(models, "chat")
  const chat = useChat(orgId, kept.messages)
  const { messages, busy } = chat
  const isWritten = busy && messages.at(-1)?.role === "assistant"
  useEffect(() => {
    if (!isWritten) keepChat(tab, { model: settings.model, system: settings.system, messages, text: "" })
  }, [tab, isWritten, messages, settings.model, settings.system])
  const [opened, setOpened] = useState({ number: 0, text: "" })
  useHashLink("c", (packed) => {
    void unpackChat(packed).then((draft) => {
      if (!draft) return
      setSettings((now) => ({ ...now, model: draft.model, system: draft.system }))
      chat.put(draft.messages)
      setOpened((before) => ({ number: before.number + 1, text: draft.text }))
    })
  })
  return (
    <div className="page h-[calc(100dvh-3rem)] gap-3 md:h-dvh">
      <header className="flex flex-wrap items-center gap-2">
        <h1 className="me-3 text-xl font-semibold tracking-tight">{t("Chat")}</h1>
        <ModelSelect
          label={t("Model")}
          use="chat"
          models={models}
          value={model}
          onChange={(next) => setSettings({ ...settings, model: next })}
        />
        <span className="flex-1 max-sm:hidden" />
        <Button kind="bare" icon="plus" disabled={chat.messages.length === 0} onClick={chat.clear}>
          {t("New chat")}
        </Button>
      </header>
      <ShippedModelNotice
        model={model}
        models={models}
        onConnected={(next) => setSettings((now) => ({ ...now, model: next }))}
      />
      <SettingsForm settings={settings} onChange={setSettings} />
      <Conversation messages={chat.messages} busy={chat.busy} />
      <ErrorNotice error={chat.error} />
      {chat.figures || chat.sequenceId ? (
        <p className="number text-soft flex flex-wrap justify-between gap-x-4 text-xs" role="status">
          <span>{chat.figures}</span>
          {chat.sequenceId ? (
            <span>
              {t("Recorded as")} <SequenceLink id={chat.sequenceId} />
            </span>
          ) : null}
        </p>
      ) : null}
      {chat.cutAt ? (
        <p className="text-soft text-xs" role="status">
          <T
            text="The answer was cut off at {count} tokens: raise <b>Most tokens</b> under Instructions and settings for longer ones."
            one="The answer was cut off at {count} token: raise <b>Most tokens</b> under Instructions and settings for longer ones."
            count={chat.cutAt}
            b={(children) => <strong>{children}</strong>}
          />
        </p>
      ) : null}
      <Composer
        key={opened.number}
        first={opened.text}
        wrong={whatIsWrong(settings)}
        busy={chat.busy}
        onStop={chat.stop}
        onSend={(text) => chat.send(text, { ...settings, model })}
      />
    </div>
  )
}

function useChat(orgId: string, before: readonly ChatMessage[]) {
  const storage = useBrowserStorage()
  const [messages, setMessages] = useState(before)
  const [running, setRunning] = useState<AbortController | null>(null)
  const [error, setError] = useState<unknown>(null)
  const [figures, setFigures] = useState<string | null>(null)
  const [sequenceId, setSequenceId] = useState<string | null>(null)
  /** At how many tokens the last answer ended before its end. */
  const [cutAt, setCutAt] = useState<number | null>(null)
  const send = async (text: string, settings: Settings): Promise<void> => {
    const controller = new AbortController()
    const asked: ChatMessage[] = [...messages, { role: "user", content: text }]
    setMessages(asked)
    setRunning(controller)
    setError(null)
    setFigures(null)
    setSequenceId(null)
    setCutAt(null)
    const tokensMax = numberOf(settings.tokensMax, "whole", tokensBounds) ?? 0
    const startedMs = performance.now()
    let answer = ""
    try {
      const events = streamChat({
        model: settings.model,
        messages: settings.system.trim() ? [{ role: "system", content: settings.system }, ...asked] : asked,
        temperature: numberOf(settings.temperature, "number", temperatureBounds) ?? 0,
        tokensMax,
        orgId,
        signal: controller.signal,
      })
      for await (const event of events) {
        if (controller.signal.aborted) break
        if (event.kind === "sequence") {
          setSequenceId(event.id)
          rememberSequence(storage, event.id, text)
        }
        if (event.kind === "text") {
          answer += event.text
          setMessages([...asked, { role: "assistant", content: answer }])
        }
        if (event.kind === "end" && event.reason === "length") setCutAt(tokensMax)
        if (event.kind === "usage") {
          const tookMs = performance.now() - startedMs
          const speed = (event.outputTokens / tookMs) * 1000
          setFigures(
            tn(
              event.inputTokens,
              "{count} token in, {outputTokens} out, {tookMs}, {speed} tokens a second",
              "{count} tokens in, {outputTokens} out, {tookMs}, {speed} tokens a second",
              {
                outputTokens: count(event.outputTokens),
                tookMs: milliseconds(tookMs),
                speed: decimal(speed, 1),
              },
            ),
          )
        }
      }
    } catch (failure) {
      if (!controller.signal.aborted) setError(failure)
    } finally {
      setRunning((now) => (now === controller ? null : now))
    }
  }
  /** Instead of the conversation that is there. */
  const put = (conversation: readonly ChatMessage[]): void => {
    running?.abort()
    setMessages(conversation)
    setError(null)
    setFigures(null)
    setSequenceId(null)
    setCutAt(null)
  }
  return {
    messages,
    error,
    figures,
    sequenceId,
    cutAt,
    busy: running !== null,
    send: (text: string, settings: Settings) => void send(text, settings),
    stop: () => running?.abort(),
    put,
    clear: () => put([]),
  }
}

function SettingsForm({
  settings,
  onChange,
}: {
  settings: Settings
  onChange: (settings: Settings) => void
}): ReactNode {
  return (
    <details className="panel px-3 py-2">
      <summary className="text-soft text-xs font-medium">{t("Instructions and settings")}</summary>
      <div className="grid grid-cols-1 gap-3 pt-3 sm:grid-cols-[1fr_8rem_8rem]">
        <AreaField
          label={t("Instructions to the model")}
          rows={2}
          dir="auto"
          value={settings.system}
          onChange={(event) => onChange({ ...settings, system: event.target.value })}
        />
        <NumberField
          kind="number"
          bounds={temperatureBounds}
          label={t("Temperature")}
          value={settings.temperature}
          onText={(temperature) => onChange({ ...settings, temperature })}
        />
        <NumberField
          kind="whole"
          bounds={tokensBounds}
          label={t("Most tokens")}
          value={settings.tokensMax}
          onText={(tokensMax) => onChange({ ...settings, tokensMax })}
        />
      </div>
    </details>
  )
}

function Conversation({ messages, busy }: { messages: readonly ChatMessage[]; busy: boolean }): ReactNode {
  const end = useRef<HTMLDivElement>(null)
  useEffect(() => {
    end.current?.scrollIntoView({ block: "end" })
  }, [messages])
  if (messages.length === 0)
    return (
      <div className="panel grid min-h-40 flex-1 place-items-center">
        <Empty icon="chat" title={t("Say something")}>
          {t("Answers appear as they are written. For typed answers with probabilities, use the playground.")}
        </Empty>
      </div>
    )
  return (
    <div
      className="panel min-h-40 flex-1 overflow-y-auto p-4"
      role="log"
      aria-label={t("Conversation")}
      aria-busy={busy}
      tabIndex={0}
    >
      <ol className="flex flex-col gap-4">
        {messages.map(({ role, content }, index) => (
          <li key={index} className={role === "user" ? "self-end" : "group self-start"}>
            <p className="sr-only">{role === "user" ? t("You") : t("The model")}</p>
            <div
              dir="auto"
              className={`max-w-prose rounded-2xl px-3.5 py-2 leading-relaxed wrap-anywhere whitespace-pre-wrap ${role === "user" ? "bg-accent text-on-accent" : "bg-sunken"}`}
            >
              {content}
            </div>
            {role === "assistant" ? <CopyButton text={content} label={t("Copy answer")} bare /> : null}
          </li>
        ))}
        {busy && messages.at(-1)?.role === "user" ? (
          <li className="text-soft animate-pulse self-start text-sm">{t("thinking")}</li>
        ) : null}
      </ol>
      <div ref={end} />
    </div>
  )
}

function Composer({
  first,
  wrong,
  busy,
  onSend,
  onStop,
}: {
  first: string
  /** In the settings, which may be folded away. */
  wrong: string | null
  busy: boolean
  onSend: (text: string) => void
  onStop: () => void
}): ReactNode {
  const [text, setText] = useState(first)
  const send = (event: FormEvent | KeyboardEvent): void => {
    event.preventDefault()
    if (busy || wrong !== null || text.trim() === "") return
    onSend(text)
    setText("")
  }
  return (
    <form onSubmit={send} className="flex flex-wrap items-end gap-2">
      {wrong === null ? null : (
        <p className="text-bad basis-full text-xs" role="alert">
          {wrong}
        </p>
      )}
      <textarea
        aria-label={t("Message")}
        dir="auto"
        rows={1}
        value={text}
        placeholder={t("Write a message (Enter sends it)")}
        title={t("Enter sends, Shift Enter breaks the line")}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) =>
          event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing && send(event)
        }
        className="control field-sizing-content max-h-40 min-h-9 min-w-0 flex-1 resize-none !py-[7px] !leading-5"
      />
      {busy ? (
        <Button icon="stop" onClick={onStop}>
          {t("Stop")}
        </Button>
      ) : (
        <Button type="submit" kind="loud" icon="send" disabled={wrong !== null || text.trim() === ""}>
          {t("Send")}
        </Button>
      )}
    </form>
  )
}
