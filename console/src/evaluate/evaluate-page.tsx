/** stub */
export function EvaluatePage() {
  return <p>stub</p>
}
