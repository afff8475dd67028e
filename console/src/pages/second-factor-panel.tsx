/** Two-factor sign-in of the signed-in user: set up with an authenticator app, recovery codes, switched off. */
import { queryOptions, useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { CopyButton } from "../parts/copy-button.tsx"
import { Dialog, FormDialog } from "../parts/dialog.tsx"
import { TextField } from "../parts/field.tsx"
import { Badge, Loaded, Notice, Panel } from "../parts/page.tsx"
import { QrPicture } from "../parts/qr-picture.tsx"
import { CodeField } from "../shell/second-step.tsx"
import { useSession } from "../session.ts"
import { saveFile } from "../tables/save-file.ts"
import { T } from "../i18n/sentence.tsx"
import { t, tn } from "../i18n/translate.ts"

const factorQuery = queryOptions({
  queryKey: ["second-factor"],
  queryFn: async () => await api.getSecondFactor(),
})
const refreshes = [factorQuery.queryKey, ["sessions"]]

type Step = "set-up" | "renew" | "remove"

/** Fewer are said in the color of a warning. */
const codesLeftMin = 3

export function SecondFactorPanel(): ReactNode {
  const query = useQuery(factorQuery)
  const [step, setStep] = useState<Step | null>(null)
  /** Null inside: the response with them was lost. */
  const [recovery, setRecovery] = useState<{ readonly codes: readonly string[] | null } | null>(null)
  const close = (): void => setStep(null)
  const show = (codes: readonly string[] | null): void => {
    setStep(null)
    setRecovery({ codes })
  }
  const enabled = query.data?.enabled ?? false
  return (
    <Panel
      title={t("Two-factor sign-in")}
      actions={
        query.data ? <Badge tone={enabled ? "good" : "plain"}>{enabled ? t("On") : t("Off")}</Badge> : null
      }
    >
      <Loaded query={query} label={t("Loading two-factor sign-in")}>
        {({ recovery_codes_left: left }) =>
          enabled ? (
            <div className="flex flex-col gap-3">
              <p className="text-soft text-sm">
                {tn(
                  left,
                  "Your password needs a code of your authenticator app beside it. {count} recovery code left.",
                  "Your password needs a code of your authenticator app beside it. {count} recovery codes left.",
                )}
              </p>
              {left < codesLeftMin ? (
                <Notice tone="warn">
                  {t("Get new recovery codes: without one, a lost phone locks you out.")}
                </Notice>
              ) : null}
              <div className="flex flex-wrap gap-2">
                <Button onClick={() => setStep("renew")}>{t("New recovery codes")}</Button>
                <Button kind="bad" onClick={() => setStep("remove")}>
                  {t("Switch off")}
                </Button>
              </div>
            </div>
          ) : (
            <div className="flex flex-col items-start gap-3">
              <p className="text-soft text-sm">
                {t(
                  "Who learns your password still cannot sign in: a code of an app on your phone is asked for too.",
                )}
              </p>
              <Button onClick={() => setStep("set-up")}>{t("Set up")}</Button>
            </div>
          )
        }
      </Loaded>
      {step === "set-up" ? <SetUpDialog onCodes={show} onClose={close} /> : null}
      {step === "renew" ? <RenewDialog onCodes={show} onClose={close} /> : null}
      {step === "remove" ? <RemoveDialog onClose={close} /> : null}
      {recovery ? <RecoveryCodes {...recovery} onClose={() => setRecovery(null)} /> : null}
    </Panel>
  )
}

interface Closing {
  readonly onClose: () => void
}
interface Finishing extends Closing {
  readonly onCodes: (codes: readonly string[] | null) => void
}

function SetUpDialog(props: Finishing): ReactNode {
  const needsPassword = useSession()?.has_password ?? false
  const [password, setPassword] = useState("")
  const begin = useWrite(
    async () => await api.beginSecondFactor({ body: needsPassword ? { current_password: password } : {} }),
    [],
  )
  const { secret, uri } = begin.data ?? {}
  if (secret && uri) return <ConfirmSecret {...props} secret={secret} uri={uri} />
  return (
    <FormDialog
      title={t("Set up two-factor sign-in")}
      submit={t("Continue")}
      write={begin}
      onClose={props.onClose}
    >
      <p className="text-soft text-sm">
        {t("You need an authenticator app on your phone, such as Aegis, Google Authenticator or 1Password.")}
      </p>
      {needsPassword ? (
        <TextField
          label={t("Current password")}
          type="password"
          autoComplete="current-password"
          required
          value={password}
          onChange={(event) => setPassword(event.target.value)}
        />
      ) : null}
    </FormDialog>
  )
}

function ConfirmSecret({
  secret,
  uri,
  onCodes,
  onClose,
}: Finishing & { secret: string; uri: string }): ReactNode {
  const [code, setCode] = useState("")
  const write = useWrite(
    async () => await api.confirmSecondFactor({ body: { code } }),
    refreshes,
    ({ recovery_codes }) => onCodes(recovery_codes),
  )
  return (
    <FormDialog title={t("Add Umpire to your app")} submit={t("Switch on")} write={write} onClose={onClose}>
      <p className="text-sm">
        <T
          text="In the app, scan this code or type the key below it, or <a>open the app</a> on this device."
          a={(children) => (
            <a className="text-accent underline" href={uri}>
              {children}
            </a>
          )}
        />
      </p>
      <QrPicture text={uri} label={t("QR code of the key")} />
      <div className="bg-sunken border-line flex items-center gap-2 rounded-lg border p-2.5">
        <code
          aria-label={t("Key for the app")}
          className="min-w-0 flex-1 font-mono text-xs break-all select-all"
        >
          {secret.replaceAll(/.{4}(?!$)/g, "$& ")}
        </code>
        <CopyButton text={secret} label={t("Copy key")} bare />
      </div>
      <CodeField
        value={code}
        onText={setCode}
        hint={t("The six digits that the app shows now. Your other sessions are signed out.")}
      />
    </FormDialog>
  )
}

function RenewDialog({ onCodes, onClose }: Finishing): ReactNode {
  const [code, setCode] = useState("")
  const write = useWrite(
    async () => await api.replaceRecoveryCodes({ body: { code } }),
    refreshes,
    ({ recovery_codes }) => onCodes(recovery_codes),
  )
  return (
    <FormDialog title={t("New recovery codes")} submit={t("Get new codes")} write={write} onClose={onClose}>
      <p className="text-soft text-sm">{t("The recovery codes that you have now stop working.")}</p>
      <CodeField value={code} onText={setCode} hint={t("Six digits of the app, or a recovery code.")} />
    </FormDialog>
  )
}

function RemoveDialog({ onClose }: Closing): ReactNode {
  const [code, setCode] = useState("")
  const write = useWrite(async () => await api.removeSecondFactor({ body: { code } }), refreshes, onClose)
  return (
    <FormDialog
      title={t("Switch off two-factor sign-in")}
      submit={t("Switch off")}
      danger
      write={write}
      onClose={onClose}
    >
      <p className="text-soft text-sm">{t("From then on your password alone signs you in.")}</p>
      <CodeField value={code} onText={setCode} hint={t("Six digits of the app, or a recovery code.")} />
    </FormDialog>
  )
}

function RecoveryCodes({ codes, onClose }: Closing & { codes: readonly string[] | null }): ReactNode {
  const text = (codes ?? []).join("\n")
  return (
    <Dialog
      title={t("Your recovery codes")}
      onClose={onClose}
      guard={{
        when: "always",
        question: t("Close it? They cannot be shown again."),
        stay: t("Keep it open"),
        leave: t("Close anyway"),
      }}
    >
      <div className="flex flex-col gap-4">
        <Notice tone="warn">
          {codes
            ? t(
                "Keep them where your phone is not. Each signs you in once without the app; they are shown only now.",
              )
            : t("The response with them was lost, and they are shown only once. Get new recovery codes.")}
        </Notice>
        {codes ? (
          <>
            <ul
              aria-label={t("Recovery codes")}
              className="bg-sunken border-line grid gap-1 rounded-lg border p-3"
            >
              {codes.map((code) => (
                <li key={code} className="font-mono text-sm select-all">
                  {code}
                </li>
              ))}
            </ul>
            <div className="flex flex-wrap gap-2">
              <CopyButton text={text} label={t("Copy codes")} />
              <Button small onClick={() => saveFile("umpire-recovery-codes.txt", `${text}\n`, "text/plain")}>
                {t("Download")}
              </Button>
            </div>
          </>
        ) : null}
        <div className="flex justify-end">
          <Button kind="loud" onClick={onClose}>
            {t("I have kept them")}
          </Button>
        </div>
      </div>
    </Dialog>
  )
}
