-- Neovim 0.11 or later. Copy this file to ~/.config/nvim/lsp/, and add to init.lua:
--
--   vim.lsp.enable("remat_migrate")
return {
  cmd = { "remat-migrate", "server" },
  filetypes = { "python", "sh", "bash", "yaml", "toml", "make", "dockerfile", "env" },
  root_markers = { "pyproject.toml", "setup.py", "setup.cfg", ".git" },
}
