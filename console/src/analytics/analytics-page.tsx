/** stub */
export function AnalyticsPage() {
  return <p>stub</p>
}
