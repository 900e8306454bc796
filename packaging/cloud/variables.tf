variable "servers" {
  description = "Private addresses of the servers, one, three, five or seven; the first one creates the cluster"
  type        = list(string)
  validation {
    condition     = contains([1, 3, 5, 7], length(var.servers)) && alltrue([for s in var.servers : can(regex("^[0-9A-Za-z.:-]+$", s))])
    error_message = "Give the addresses of 1, 3, 5 or 7 servers."
  }
}

variable "nodes" {
  description = "Number of compute nodes"
  type        = number
  validation {
    condition     = var.nodes >= 0 && var.nodes <= 10000
    error_message = "Give 0 to 10000 nodes."
  }
}

variable "program_url" {
  description = "Where machines fetch the program muster"
  type        = string
  validation {
    condition     = can(regex("^https?://[^\\s\"$`\\\\]+$", var.program_url))
    error_message = "Give an address that begins with https://."
  }
}

variable "program_sha256" {
  description = "SHA-256 of the program"
  type        = string
  validation {
    condition     = can(regex("^[0-9a-f]{64}$", var.program_sha256))
    error_message = "Give 64 hexadecimal digits, as sha256sum prints them."
  }
}

variable "secret_get" {
  description = "Script that prints the secret of the role $1 (server or client). It contains no secret itself"
  type        = string
}

variable "secret_put" {
  description = "Script that stores its standard input as the secret of the role $1"
  type        = string
}

variable "token_expires" {
  description = "How long a join token is valid"
  type        = string
  default     = "24h"
  validation {
    condition     = can(regex("^[0-9]+[hms]$", var.token_expires))
    error_message = "Give a time like 24h."
  }
}
