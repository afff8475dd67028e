/** stub */
export function KeysPage() {
  return <p>stub</p>
}
