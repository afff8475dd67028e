/** stub */
export function BillingPage() {
  return <p>stub</p>
}
