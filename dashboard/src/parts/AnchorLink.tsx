import { Anchor, type AnchorProps } from '@mantine/core'
import { createLink } from '@tanstack/react-router'
import type { AnchorHTMLAttributes } from 'react'

type PlainProps = Omit<AnchorHTMLAttributes<HTMLAnchorElement>, keyof AnchorProps> & AnchorProps

/** A link within the dashboard, type-checked against the routes. */
export const AnchorLink = createLink((props: PlainProps) => <Anchor size="sm" {...props} />)
