import { Anchor, type AnchorProps } from '@mantine/core'
import { createLink } from '@tanstack/react-router'
import type { AnchorHTMLAttributes } from 'react'

type PlainProps = Omit<AnchorHTMLAttributes<HTMLAnchorElement>, keyof AnchorProps> & AnchorProps

/** A link to a page of ours, checked against the routes there are. */
export const AnchorLink = createLink((props: PlainProps) => <Anchor size="sm" {...props} />)
