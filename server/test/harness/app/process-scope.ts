/** What the test files of one process share. It is disposed of after the last of them. */
export const processScope = new AsyncDisposableStack()
