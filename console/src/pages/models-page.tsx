/** stub */
export function ModelsPage() {
  return <p>stub</p>
}
