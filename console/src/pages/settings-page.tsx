/** Settings: the organization's name and retention, what it keeps of its requests, its limits, the user's profile and the theme. */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import { storedResponsesDaysMax } from "../../../src/contract/platform/organizations.ts"
import { passwordCharactersMin } from "../../../src/contract/platform/sessions.ts"
import { api, useWrite } from "../api.ts"
import { ContentPanel } from "../content/content-panel.tsx"
import { Button } from "../parts/button.tsx"
import { CopyButton } from "../parts/copy-button.tsx"
import { Segments, TextField } from "../parts/field.tsx"
import { Figure } from "../parts/figure.tsx"
import { Form } from "../parts/form.tsx"
import { count } from "../parts/format.ts"
import { NumberField } from "../parts/number-field.tsx"
import { Loaded, Notice, Page, Panel } from "../parts/page.tsx"
import { numberOf } from "../parts/typed-number.ts"
import { PasskeysPanel } from "./passkeys-panel.tsx"
import { SecondFactorPanel } from "./second-factor-panel.tsx"
import { MemberSessionsPanel, OwnSessionsPanel, SingleSignOnPanel } from "./sessions-panel.tsx"
import { sessionQuery, useIsOwner, useOrganization, useSession } from "../session.ts"
import { chooseTheme, themes, useTheme } from "../theme.ts"
import { t } from "../i18n/translate.ts"

export function SettingsPage(): ReactNode {
  return (
    <Page title={t("Settings")}>
      <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-2">
        <div className="grid gap-4">
          <OrganizationPanel />
          <ResourcesPanel />
          <PasswordPanel />
          <PasskeysPanel />
          <SecondFactorPanel />
          <OwnSessionsPanel />
          <AppearancePanel />
        </div>
        <div className="grid gap-4">
          <ContentPanel />
          <SingleSignOnPanel />
          <MemberSessionsPanel />
        </div>
      </div>
    </Page>
  )
}

function OrganizationPanel(): ReactNode {
  const organization = useOrganization()
  const owner = useIsOwner()
  const [name, setName] = useState(organization.name)
  const [days, setDays] = useState(String(organization.data_persistence.stored_responses_days ?? ""))
  const write = useWrite(
    async () =>
      await api.updateOrganization({
        params: { org_id: organization.id },
        body: { name, data_persistence: { stored_responses_days: numberOf(days, "whole", daysBounds) } },
      }),
    [["organizations"]],
  )
  return (
    <Panel title={t("Organization")}>
      <Form
        write={write}
        footer={
          owner ? (
            <Button type="submit" kind="loud" className="self-start" busy={write.isPending}>
              {t("Save")}
            </Button>
          ) : (
            <Notice tone="info">{t("Only owners can change these settings.")}</Notice>
          )
        }
      >
        <TextField
          label={t("Name")}
          required
          maxLength={200}
          disabled={!owner}
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        <NumberField
          kind="whole"
          bounds={daysBounds}
          label={t("Keep stored responses for (days)")}
          placeholder="30"
          disabled={!owner}
          hint={t("Leave empty for the default of 30 days; 0 stores nothing.")}
          value={days}
          onText={setDays}
        />
        <div>
          <span className="label">{t("Organization ID")}</span>
          <div className="flex items-center gap-2 text-xs">
            <span className="font-mono">{organization.id}</span>
            <CopyButton text={organization.id} label={t("Copy organization id")} bare />
          </div>
        </div>
        {write.isSuccess ? <Notice tone="good">{t("Saved.")}</Notice> : null}
      </Form>
    </Panel>
  )
}

const daysBounds = { min: 0, max: storedResponsesDaysMax }

function ResourcesPanel(): ReactNode {
  const { id: org_id } = useOrganization()
  const query = useQuery({
    queryKey: ["resources", org_id],
    queryFn: async () => await api.getOrganizationResources({ params: { org_id } }),
  })
  return (
    <Panel title={t("Limits and resources")}>
      <Loaded query={query} label={t("Loading resources")}>
        {({ regions, rate_limit, counts }) => (
          <dl className="number grid grid-cols-2 gap-3 text-sm">
            <Figure
              look="plain"
              name={t("Requests per minute")}
              value={count(rate_limit.requests_per_minute)}
            />
            <Figure look="plain" name={t("Burst")} value={count(rate_limit.burst)} />
            <Figure look="plain" name={t("Available models")} value={count(counts.models)} />
            <Figure look="plain" name={t("API keys")} value={count(counts.api_keys)} />
            <Figure look="plain" name={t("Members")} value={count(counts.members)} />
            <Figure look="plain" name={t("Regions")} value={regions.map(({ id }) => id).join(", ")} />
          </dl>
        )}
      </Loaded>
    </Panel>
  )
}

function PasswordPanel(): ReactNode {
  const session = useSession()
  const [current, setCurrent] = useState("")
  const [next, setNext] = useState("")
  const write = useWrite(
    async () =>
      await api.setPassword({
        body: { password: next, ...(session?.has_password ? { current_password: current } : {}) },
      }),
    [sessionQuery.queryKey],
    () => {
      setCurrent("")
      setNext("")
    },
  )
  return (
    <Panel title={t("Your password")}>
      <Form
        write={write}
        footer={
          <Button type="submit" className="self-start" busy={write.isPending}>
            {t("Set password")}
          </Button>
        }
      >
        {/* Password managers need to know whose password this is. */}
        <input type="text" autoComplete="username" value={session?.user.email ?? ""} readOnly hidden />
        {session?.has_password ? (
          <TextField
            label={t("Current password")}
            type="password"
            autoComplete="current-password"
            required
            value={current}
            onChange={(event) => setCurrent(event.target.value)}
          />
        ) : (
          <p className="text-soft text-sm">
            {t("You signed in with a one-time link. Set a password to sign in again later.")}
          </p>
        )}
        <TextField
          label={t("New password")}
          type="password"
          autoComplete="new-password"
          required
          minLength={passwordCharactersMin}
          hint={t("At least {passwordCharactersMin} characters. Your other sessions are signed out.", {
            passwordCharactersMin,
          })}
          value={next}
          onChange={(event) => setNext(event.target.value)}
        />
        {write.isSuccess ? <Notice tone="good">{t("Your password is set.")}</Notice> : null}
      </Form>
    </Panel>
  )
}

function AppearancePanel(): ReactNode {
  const theme = useTheme()
  return (
    <Panel title={t("Appearance")}>
      <Segments
        label={t("Theme")}
        value={theme}
        options={themes.map((value) => ({
          value,
          label: { system: t("System"), light: t("Light"), dark: t("Dark") }[value],
        }))}
        onChange={chooseTheme}
      />
    </Panel>
  )
}
