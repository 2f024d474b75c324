import * as vscode from "vscode";
import { LanguageClient, type LanguageClientOptions } from "vscode-languageclient/node";

const NAME = "remat-migrate";
const LANGUAGES = ["python", "shellscript", "yaml", "toml", "dockerfile", "makefile", "dotenv"];

let client: LanguageClient | undefined;

/** Starts the language server, and restarts it when the setting that names it changes. */
export async function activate(context: vscode.ExtensionContext): Promise<void> {
  context.subscriptions.push(
    vscode.commands.registerCommand(`${NAME}.restart`, restart),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration(`${NAME}.command`)) {
        await restart();
      }
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await client?.dispose();
  client = undefined;
}

async function restart(): Promise<void> {
  await deactivate();
  await start();
}

async function start(): Promise<void> {
  const configured = vscode.workspace.getConfiguration(NAME).get<string[]>("command", [NAME]);
  const [command = NAME, ...args] = configured;
  const options: LanguageClientOptions = {
    documentSelector: [
      ...LANGUAGES.flatMap((language) => [
        { scheme: "file", language },
        { scheme: "untitled", language },
      ]),
      // VS Code has no language for these by itself.
      { scheme: "file", pattern: "**/{.env,.env.*,*.env,.envrc}" },
    ],
  };
  client = new LanguageClient(NAME, NAME, { command, args: [...args, "server"] }, options);
  try {
    await client.start();
  } catch {
    // The client has logged the reason.
    void vscode.window.showErrorMessage(
      `Cannot run ${command}. Install it with "pip install 'remat-migrate[lsp]'",` +
        ` or set "${NAME}.command".`,
    );
  }
}
