import assert from 'node:assert/strict'
import { eventually } from '../harness/timing/eventually.ts'
import type { TestResponse } from '../harness/app/start-app.ts'
import type { Case } from './driver.ts'
import { ownEvent } from './own-event.ts'
import { workspaceCases } from './workspace-cases.ts'
import type { World } from './world.ts'

const TRIES_MAX = 50

/** What can happen to a read of a signed tree, by the end of its path. It waits until the tree is signed. */
export function signedCases(end: string): Case[] {
  return [
    ...workspaceCases(end).map((own) => {
      if (own.status !== 200) return own
      const send = async (world: World) => {
        await ownEvent(world, world.tenants.owner)
        return await untilSigned(async () => (await own.send(world)) ?? assert.fail())
      }
      return { ...own, send }
    }),
    {
      status: 409,
      code: 'conflict',
      when: 'the events of the workspace are not signed yet',
      // A running service signs them too soon.
      send: () => null,
    },
  ]
}

export async function untilSigned(send: () => Promise<TestResponse>): Promise<TestResponse> {
  return await eventually(async () => {
    const response = await send()
    assert.notEqual(response.status, 409, response.text)
    return response
  })
}

/** The first 409 of a new event, or the last response if the signer was always faster. */
export async function beforeSigned(
  world: World,
  pathOf: (eventId: string) => string,
): Promise<TestResponse> {
  const { owner } = world.tenants
  for (let tries = 1; ; tries += 1) {
    const path = pathOf(await ownEvent(world, owner))
    const response = await world.call('GET', path, { key: owner.workspaceKey })
    if (response.status === 409 || tries >= TRIES_MAX) return response
  }
}
