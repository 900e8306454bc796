# Renders the user data of all machines. It creates none: pass server_user_data and node_user_data to the instances of
# your provider. docs/automation.md of muster has an example.
terraform {
  required_version = ">= 1.3"
}

locals {
  common = {
    servers        = join(" ", var.servers)
    program_url    = var.program_url
    program_sha256 = var.program_sha256
    token_uses     = max(var.nodes, length(var.servers)) * 2
    token_expires  = var.token_expires
    secret_get     = base64encode(var.secret_get)
    secret_put     = base64encode(var.secret_put)
    join           = filebase64("${path.module}/join.sh")
  }
}
