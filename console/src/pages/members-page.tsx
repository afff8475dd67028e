/** stub */
export function MembersPage() {
  return <p>stub</p>
}
