// Drives the language server with the protocol library of the extension's client.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, realpath, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import protocol from "vscode-languageserver-protocol/node.js";

const CODE = "import jax\n\nf = jax.checkpoint(lambda x: 2 * x, concrete=True)\n";
const COMMAND = process.env.REMAT_MIGRATE ?? "remat-migrate";

async function connect(t) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "remat-migrate-")));
  await writeFile(join(folder, "pyproject.toml"), "[project]\nname = 'p'\n");
  const server = spawn(COMMAND, ["server"], { stdio: ["pipe", "pipe", "inherit"] });
  const connection = protocol.createProtocolConnection(server.stdout, server.stdin);
  const waiting = new Map();
  const published = (uri) => new Promise((resolve) => waiting.set(uri, resolve));
  connection.onNotification(protocol.PublishDiagnosticsNotification.type, (params) =>
    waiting.get(params.uri)?.(params.diagnostics),
  );
  connection.onRequest(protocol.RegistrationRequest.type, () => {});
  connection.listen();
  const { capabilities } = await connection.sendRequest(protocol.InitializeRequest.type, {
    processId: process.pid,
    rootUri: null,
    workspaceFolders: [{ uri: pathToFileURL(folder).href, name: "p" }],
    capabilities: {
      workspace: { workspaceEdit: { documentChanges: true } },
    },
  });
  await connection.sendNotification(protocol.InitializedNotification.type, {});
  t.after(async () => {
    await connection.sendRequest(protocol.ShutdownRequest.type);
    await connection.sendNotification(protocol.ExitNotification.type);
    const [code] = await once(server, "exit");
    connection.dispose();
    assert.equal(code, 0);
  });
  return { connection, capabilities, folder, published };
}

test("a file has a finding, a fix, and an explanation", async (t) => {
  const { connection, folder, published } = await connect(t);
  const uri = pathToFileURL(join(folder, "model.py")).href;
  const found = published(uri);
  await connection.sendNotification(protocol.DidOpenTextDocumentNotification.type, {
    textDocument: { uri, languageId: "python", version: 1, text: CODE },
  });
  const [finding] = await found;
  assert.equal(finding.code, "RMT101");
  const actions = await connection.sendRequest(protocol.CodeActionRequest.type, {
    textDocument: { uri },
    range: finding.range,
    context: { diagnostics: [finding] },
  });
  const fix = actions.find((action) => action.title.startsWith("RMT101: "));
  assert.equal(fix.edit.documentChanges[0].textDocument.version, 1);
  const hover = await connection.sendRequest(protocol.HoverRequest.type, {
    textDocument: { uri },
    position: finding.range.start,
  });
  assert.match(hover.contents.value, /^# RMT101 concrete-option/);
});
