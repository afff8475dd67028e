/** Passkeys of the signed-in user: added on this device, listed and removed. */
import { queryOptions, useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog, FormDialog } from "../parts/dialog.tsx"
import { TextField } from "../parts/field.tsx"
import { ago, day } from "../parts/format.ts"
import { Loaded, Notice, Panel } from "../parts/page.tsx"
import { createPasskey, hasPasskeys } from "../parts/passkey.ts"
import { useSession } from "../session.ts"
import { signInOptionsQuery } from "../shell/sign-in-form.tsx"
import { browserName } from "./browser-name.ts"
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

const passkeysQuery = queryOptions({ queryKey: ["passkeys"], queryFn: async () => await api.listPasskeys() })

type Passkey = Awaited<ReturnType<typeof api.listPasskeys>>[number]

export function PasskeysPanel(): ReactNode {
  const query = useQuery(passkeysQuery)
  const { data: options } = useQuery(signInOptionsQuery)
  const [isAdding, setAdding] = useState(false)
  const [removed, setRemoved] = useState<Passkey | null>(null)
  return (
    <Panel title={t("Passkeys")}>
      <Loaded query={query} label={t("Loading passkeys")}>
        {(passkeys) => (
          <div className="flex flex-col items-start gap-3">
            <p className="text-soft text-sm">
              {t(
                "Sign in with your fingerprint, face or PIN instead of a password. A passkey needs no code, and no other site can ask for it.",
              )}
            </p>
            {passkeys.length === 0 ? null : (
              <ul aria-label={t("Passkeys")} className="divide-line w-full divide-y text-sm">
                {passkeys.map((passkey) => (
                  <li key={passkey.id} className="flex items-center gap-3 py-2">
                    <span className="min-w-0 flex-1">
                      <span className="block font-medium wrap-anywhere">{passkey.name}</span>
                      <span className="text-soft text-xs">
                        {passkey.last_used_at
                          ? t("Added {createdAt}, used {lastUsedAt}", {
                              createdAt: day(passkey.created_at),
                              lastUsedAt: ago(passkey.last_used_at),
                            })
                          : t("Added {createdAt}, not used yet", { createdAt: day(passkey.created_at) })}
                      </span>
                    </span>
                    <Button
                      small
                      aria-label={t("Remove {name}", { name: passkey.name })}
                      onClick={() => setRemoved(passkey)}
                    >
                      {t("Remove")}
                    </Button>
                  </li>
                ))}
              </ul>
            )}
            {options ? <AddOrWhyNot origin={options.passkey_origin} onAdd={() => setAdding(true)} /> : null}
          </div>
        )}
      </Loaded>
      {isAdding ? <AddDialog onClose={() => setAdding(false)} /> : null}
      {removed ? (
        <ConfirmDialog
          title={t("Remove {name}?", { name: removed.name })}
          submit={t("Remove")}
          act={async () => await api.removePasskey({ params: { passkey_id: removed.id } })}
          refreshes={[passkeysQuery.queryKey]}
          onClose={() => setRemoved(null)}
        >
          {t("It no longer signs you in. Remove it on the device too, which still offers it.")}
        </ConfirmDialog>
      ) : null}
    </Panel>
  )
}

function AddOrWhyNot({ origin, onAdd }: { origin: string | null; onAdd: () => void }): ReactNode {
  if (!hasPasskeys())
    return <Notice tone="info">{t("This browser, or the connection without https, has no passkeys.")}</Notice>
  if (origin === null)
    return (
      <Notice tone="info">
        <T
          text="Passkeys need a host name, and this console has an address. Ask your operator to set <code>server.public_url</code>."
          code={(children) => <code className="font-mono">{children}</code>}
        />
      </Notice>
    )
  if (origin !== location.origin)
    return (
      <Notice tone="info">
        <T
          text="Browsers use passkeys at a host name only: <a>open this page at {origin}</a>."
          origin={origin}
          a={(children) => (
            <a className="underline" href={`${origin}${location.pathname}`}>
              {children}
            </a>
          )}
        />
      </Notice>
    )
  return <Button onClick={onAdd}>{t("Add a passkey")}</Button>
}

function AddDialog({ onClose }: { onClose: () => void }): ReactNode {
  const needsPassword = useSession()?.has_password ?? false
  const [password, setPassword] = useState("")
  const [name, setName] = useState(() => browserName(navigator.userAgent))
  const write = useWrite(
    async () => {
      const made = await createPasskey(needsPassword ? password : null)
      if (!made) throw new Error(t("No passkey was made. Try again, and confirm it on the device."))
      return await api.addPasskey({ body: { ...made, name } })
    },
    [passkeysQuery.queryKey],
    onClose,
  )
  return (
    <FormDialog
      title={t("Add a passkey")}
      submit={t("Continue on this device")}
      write={write}
      onClose={onClose}
    >
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
      <TextField
        label={t("Name")}
        required
        maxLength={200}
        hint={t("By which you know it in the list.")}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
    </FormDialog>
  )
}
