/** stub */
export function ChatPage() {
  return <p>stub</p>
}
