/** stub */
export function IdentityPage() {
  return <p>stub</p>
}
