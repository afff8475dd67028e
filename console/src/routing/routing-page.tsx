/** stub */
export function RoutingPage() {
  return <p>stub</p>
}
