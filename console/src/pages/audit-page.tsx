/** stub */
export function AuditPage() {
  return <p>stub</p>
}
