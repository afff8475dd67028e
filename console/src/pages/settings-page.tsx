/** stub */
export function SettingsPage() {
  return <p>stub</p>
}
