import asyncHooks, { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'

/**
 * Import this before anything imports `node:test`.
 *
 * To know which test some code belongs to, `node:test` installs an async hook, which Node calls for every
 * promise and callback of the services that run in the tests. It takes a tenth of their CPU time. Here
 * `node:test` gets the same information from an AsyncLocalStorage, which costs nothing measurable.
 */
const testId = new AsyncLocalStorage<number>()
let testHook: asyncHooks.HookCallbacks = {}

/** `node:test` derives its tests from this class. */
class TestScope extends AsyncResource {
  constructor(...[type, options]: ConstructorParameters<typeof AsyncResource>) {
    super(type, options)
    testHook.init?.(this.asyncId(), type, this.triggerAsyncId(), this)
  }

  override runInAsyncScope<This, Result>(
    // oxlint-disable-next-line typescript/no-explicit-any -- as in the overridden method
    fn: (this: This, ...args: any[]) => Result,
    thisArg?: This,
    // oxlint-disable-next-line typescript/no-explicit-any -- as in the overridden method
    ...args: any[]
  ): Result {
    const inScope = () => testId.run(this.asyncId(), () => Reflect.apply(fn, thisArg, args))
    return super.runInAsyncScope(inScope)
  }
}

const { createHook, executionAsyncId } = asyncHooks
Object.assign(asyncHooks, {
  AsyncResource: TestScope,
  createHook: (callbacks: asyncHooks.HookCallbacks) => {
    testHook = callbacks
    return { enable: () => {}, disable: () => {} }
  },
  executionAsyncId: () => testId.getStore() ?? executionAsyncId(),
})
await import('node:test')
Object.assign(asyncHooks, { AsyncResource, createHook, executionAsyncId })
