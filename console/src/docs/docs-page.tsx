/** stub */
export function DocsPage() {
  return <p>stub</p>
}
