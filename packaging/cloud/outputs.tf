output "server_user_data" {
  description = "User data of the servers, in the order of var.servers"
  value = [for i, address in var.servers : templatefile("${path.module}/user-data.tftpl", merge(local.common, {
    name  = "s${i + 1}"
    role  = "server"
    first = i == 0 ? "yes" : "no"
  }))]
}

output "node_user_data" {
  description = "User data of the compute nodes n1, n2 and so on"
  value = [for i in range(var.nodes) : templatefile("${path.module}/user-data.tftpl", merge(local.common, {
    name  = "n${i + 1}"
    role  = "client"
    first = "no"
  }))]
}
