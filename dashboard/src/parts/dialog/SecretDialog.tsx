import { Modal } from '@mantine/core'
import { createContext, type ReactNode, useContext, useEffect, useState } from 'react'

const SecretShown = createContext<(isShown: boolean) => void>(() => {})

/** A dialog that ends by showing a secret once. From then on only its button closes it. */
export function SecretDialog({
  isOpen,
  onClose,
  title,
  children,
}: {
  isOpen: boolean
  onClose: () => void
  title: string
  children: ReactNode
}) {
  const [isShown, setShown] = useState(false)
  return (
    <Modal
      opened={isOpen}
      onClose={onClose}
      title={title}
      size="lg"
      centered
      closeOnClickOutside={false}
      closeOnEscape={!isShown}
      withCloseButton={!isShown}
    >
      <SecretShown value={setShown}>{isOpen && children}</SecretShown>
    </Modal>
  )
}

/** Tells the surrounding dialog, if any, that a secret is visible. */
export function useSecretShown(): void {
  const setShown = useContext(SecretShown)
  useEffect(() => {
    setShown(true)
    return () => setShown(false)
  }, [setShown])
}
