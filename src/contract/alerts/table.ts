/** The endpoints of alerts and webhooks. */
import {
  createAlertRule,
  deleteAlertRule,
  getAlertOptions,
  getAlertRule,
  listAlertRules,
  listAlerts,
  updateAlertRule,
} from "./rules.ts"
import {
  createWebhook,
  deleteWebhook,
  getWebhook,
  getWebhookDelivery,
  listWebhookDeliveries,
  listWebhooks,
  resendWebhookDelivery,
  rotateWebhook,
  testWebhook,
  updateWebhook,
} from "./webhooks.ts"

export const alertTable = {
  getAlertOptions,
  listAlertRules,
  createAlertRule,
  getAlertRule,
  updateAlertRule,
  deleteAlertRule,
  listAlerts,
  listWebhooks,
  createWebhook,
  getWebhook,
  updateWebhook,
  rotateWebhook,
  deleteWebhook,
  testWebhook,
  listWebhookDeliveries,
  getWebhookDelivery,
  resendWebhookDelivery,
}
